import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, test } from 'node:test';
import { findFreePort, readConfig } from '@skerry/kit';
import { Datagrams } from './dataplane/native/testing/datagrams.ts';
import { until } from './dataplane/testing/suite/world.ts';
import { gatewayService } from './index.ts';
import { cryptoFrame, initialDatagram, listVersions } from './quic/testing/initials.ts';
import { HOST, log, running, Scene } from './testing/scene.ts';
import { helloMessage } from './tls/testing/hello.ts';

const hello = (serverName: string) => initialDatagram([cryptoFrame(0, helloMessage({ serverName }))]);
const portOf = (url: string | undefined) => Number(new URL(url!).port);

describe('a gateway and QUIC', () => {
  test('forwards by the four words of an instance, and counts', async () => {
    await using instance = await Datagrams.open('::1');
    await using scene = await Scene.open({
      SKERRY_GATEWAY_UPSTREAM_HTTPS_PORT: String(instance.port),
    });
    scene.core.putQuietly(running);
    await scene.start();
    await scene.untilActive();
    await using client = await Datagrams.open('127.0.0.1');
    client.send(hello(HOST), portOf(scene.urls[1]), '127.0.0.1');
    const [first] = await instance.take(1);
    assert.deepEqual(first, hello(HOST));
    const metrics = await (await fetch(`${scene.urls[2]}/metrics`)).text();
    assert.match(metrics, /^skerry_gateway_quic_open_flows 1$/m);
    assert.match(metrics, /^skerry_gateway_quic_bytes_total\{direction="to_instances"\} [1-9][0-9]+$/m);
  });

  test('tells whether HTTP/3 reaches an instance', async () => {
    await using instance = await Datagrams.open('::1');
    await using scene = await Scene.open({
      SKERRY_GATEWAY_UPSTREAM_HTTPS_PORT: String(instance.port),
    });
    scene.core.putQuietly(running);
    await scene.start();
    await scene.untilActive();
    instance.answer(listVersions);
    // An answer may come late on a busy machine.
    const isTold = async () => {
      const { body } = await scene.api(`/api/why/${HOST}`);
      return JSON.stringify(body.http3) === `{"ok":true,"detail":"UDP port ${instance.port}: answers"}`;
    };
    await until(isTold);
  });

  const toldBy = async (scene: Scene) => (await scene.api(`/api/why/${HOST}`)).body.http3;
  const without = (why: string) => ({ ok: null, detail: `this gateway does not forward QUIC: ${why}` });

  test('is off where it is turned off', async () => {
    await using scene = await Scene.open({ SKERRY_GATEWAY_QUIC: 'no' });
    await scene.start();
    assert.deepEqual(await toldBy(scene), without('SKERRY_GATEWAY_QUIC is no'));
    // The port is free for datagrams.
    await using _other = await Datagrams.open('127.0.0.1', portOf(scene.urls[1]));
  });

  test('goes on without it where it cannot be had, and says why; who insists on it hears so', async () => {
    // Its TCP stays free: nobody else is given such a port.
    await using taken = await Datagrams.open('127.0.0.1', await findFreePort());
    const settings = { SKERRY_GATEWAY_HTTPS_PORT: String(taken.port) };
    await using scene = await Scene.open(settings);
    await scene.start();
    assert.deepEqual(await toldBy(scene), without(`UDP port ${taken.port} cannot be opened: EADDRINUSE`));
    await scene.stop();
    await using insisting = await Scene.open({ ...settings, SKERRY_GATEWAY_QUIC: 'yes' });
    await assert.rejects(insisting.start(), { code: 'PORT_IN_USE' });
  });

  test('does not share its port', async () => {
    await using insisting = await Scene.open({
      SKERRY_GATEWAY_QUIC: 'yes',
      SKERRY_GATEWAY_SHARE_PORT: 'yes',
    });
    await assert.rejects(insisting.start(), { code: 'INVALID_CONFIG', message: /cannot be shared/ });
    await using scene = await Scene.open({ SKERRY_GATEWAY_SHARE_PORT: 'yes' });
    await scene.start();
    assert.deepEqual(await toldBy(scene), without('SKERRY_GATEWAY_SHARE_PORT is yes'));
  });

  test("forwards the custom domains of a compute node's instances", async () => {
    await using instance = await Datagrams.open('::1');
    const route = { name: 'shop.example', item_hash: 'a'.repeat(64), ipv6: '::1' };
    const node = createServer((_request, response) => {
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify([{ ...route, ipv4: { public: null, local: null } }]));
    }).listen(0, '127.0.0.1');
    await once(node, 'listening');
    await using scene = await Scene.open({
      SKERRY_GATEWAY_UPSTREAM_HTTPS_PORT: String(instance.port),
      SKERRY_GATEWAY_NODE_URL: `http://127.0.0.1:${(node.address() as AddressInfo).port}`,
    });
    const signal = new AbortController().signal;
    const front = await gatewayService.start(readConfig(gatewayService.config, scene.settings), {
      log,
      signal,
    });
    await using client = await Datagrams.open('127.0.0.1');
    // Until the front has asked its node, the name leads nowhere.
    while (instance.heard.length === 0) {
      client.send(hello('shop.example'), portOf(front.urls[1]), '127.0.0.1');
      await client.takeOr(instance);
    }
    assert.deepEqual((await instance.take(1))[0], hello('shop.example'));
    await front[Symbol.asyncDispose]();
    node.closeAllConnections();
    node.close();
  });
});
