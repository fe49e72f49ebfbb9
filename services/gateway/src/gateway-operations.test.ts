import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { describe, test } from 'node:test';
import {
  createSigner,
  GatewayClient,
  generatePrivateKey,
  type NodeNames,
  OwnerPass,
  type Signer,
} from '@skerry/client';
import { readConfig } from '@skerry/kit';
import { openClient, readBytes } from './dataplane/testing/suite/world.ts';
import { gatewayService } from './index.ts';
import { HASH, HOST, log, NAME, running, Scene } from './testing/scene.ts';
import { checkUpgrade } from './testing/upgrade.ts';
import { helloWire } from './tls/testing/hello.ts';

describe('operating the gateway', () => {
  test('why: the first thing that is missing, with a connection made to find out', async () => {
    await using scene = await Scene.open();
    await scene.start();
    const missing = async (subject = NAME) => (await scene.api(`/api/why/${subject}`)).body.missing;
    assert.match(JSON.stringify(await missing()), /HOSTNAME_NOT_FOUND/);
    scene.core.putQuietly({ ...running, phase: 'starting' });
    await scene.sync();
    // Plain HTTP answers, TLS does not: it is reachable.
    assert.equal(await missing(), null);
    const { body } = await scene.api(`/api/why/${HASH}`);
    assert.match(JSON.stringify(body.chain), /port 443: refused, port \d+: accepts connections/);
    assert.equal((await scene.api('/api/why/not-a-name')).status, 400);
    await scene.visit();
    const metrics = await (await fetch(`${scene.urls[2]}/metrics`)).text();
    assert.match(metrics, /^skerry_gateway_http_requests_total\{class="http1",outcome="forwarded"\} 1$/m);
    assert.match(metrics, /^skerry_gateway_tls_connections_total\{outcome="unknown_name"\} 0$/m);
    assert.match(metrics, /^skerry_gateway_routes 1$/m);
  });

  test('lists: where names lead, and who shares one', async () => {
    await using scene = await Scene.open();
    const later = { ...running, instance_id: `${HASH.slice(0, -1)}0`, created_at: 2_000, placed: true };
    assert.notEqual(later.instance_id, HASH);
    scene.core.putQuietly({ ...running, placed: true });
    await scene.start();
    await scene.untilActive();
    const names = { instance_hash: HASH, subdomain: NAME, ipv6: '::1', active: true };
    const listed = async () => (await scene.api('/api/routes')).body;
    assert.deepEqual(await listed(), {
      routes: [{ ...names, shared_by: 1 }],
      total: 1,
      next_position: null,
    });
    scene.core.putQuietly(later);
    await scene.sync();
    assert.deepEqual((await listed()).routes, [{ ...names, shared_by: 2 }]);
    const { body } = await scene.api('/api/collisions');
    const because = 'the earlier one has it, and it counts from 1970-01-01T00:16:40.000Z';
    const waiting = [{ instance_hash: later.instance_id, because }];
    assert.deepEqual(body, {
      collisions: [{ subdomain: NAME, holder: HASH, waiting }],
      total: 1,
      next_position: null,
    });
    scene.core.instances.delete(later.instance_id);
    await scene.sync({ accept_loss: true });
    assert.equal((await scene.api('/api/collisions')).body.total, 0);
    assert.equal((await scene.api('/api/routes?position=100001')).status, 400);
  });

  test('traffic of a name is told to the owner of its instance alone', async () => {
    await using scene = await Scene.open();
    const owner = createSigner(generatePrivateKey());
    scene.core.putQuietly({ ...running, owner: owner.address });
    await scene.start();
    await scene.untilActive();
    await scene.visit();
    const url = scene.urls[2]!;
    const traffic = await (await GatewayClient.open(url, owner)).readTraffic(HASH);
    assert.deepEqual(
      [traffic.url, traffic.requests, traffic.connections, traffic.bytes_to_clients],
      [HOST, 1, 0, 0],
    );
    assert.ok(traffic.since! > 1_700_000_000);
    const path = `/api/traffic/${HASH}`;
    assert.equal((await scene.api(path)).body.code, 'SIGNATURE_REQUIRED');
    const asked = async (signer: Signer, names: NodeNames, signed = path) => {
      const headers = await (await OwnerPass.create(signer, names)).headers({ method: 'GET', path: signed });
      return (await scene.api(path, { headers })).body.code;
    };
    const domain = HOST.slice(NAME.length + 1);
    assert.equal(await asked(owner, { domain }), undefined);
    assert.equal(await asked(createSigner(generatePrivateKey()), { domain }), 'NOT_PERMITTED');
    assert.equal(await asked(owner, { domain: 'other.example' }), 'INVALID_SIGNATURE');
    assert.equal(await asked(owner, { domain, nodeId: HASH }), 'INVALID_SIGNATURE');
    assert.equal(await asked(owner, { domain }, `/api/traffic/${'0'.repeat(64)}`), 'INVALID_SIGNATURE');
  });

  test('an instance that asks for it in its message learns who the client is (PROXY protocol)', async () => {
    const instance = createServer((socket) => void socket.on('error', () => {}).pipe(socket)).listen(
      0,
      '::1',
    );
    await once(instance, 'listening');
    const { port } = instance.address() as AddressInfo;
    await using scene = await Scene.open({ SKERRY_GATEWAY_UPSTREAM_HTTPS_PORT: String(port) });
    scene.core.putQuietly(running);
    await scene.start();
    await scene.untilActive();
    const hello = helloWire({ serverName: HOST });
    const firstBytes = async () => {
      const client = await openClient(Number(new URL(scene.urls[1]!).port));
      client.write(hello);
      const bytes = await readBytes(client, hello.length);
      client.destroy();
      return bytes;
    };
    assert.deepEqual(await firstBytes(), Buffer.from(hello));
    const firewall = { allowedPorts: [443], proxyProtocol: true };
    scene.core.put({ ...running, firewall });
    const header = Buffer.from('\r\n\r\n\0\r\nQUIT\n!\x11', 'latin1');
    while (!(await firstBytes()).subarray(0, header.length).equals(header));
    // It survives a restart, like everything else that is known of it.
    await scene.stop();
    await scene.start();
    assert.deepEqual((await firstBytes()).subarray(0, header.length), header);
    scene.core.put({ ...running, firewall: { ...firewall, proxyProtocol: false } });
    while (!(await firstBytes()).equals(hello));
    instance.close();
  });

  test('a successor whose settings are wrong takes nothing: the gateway that runs serves on', async (t) => {
    const instance = createServer((socket) => void socket.on('error', () => {}).pipe(socket)).listen(0, '::');
    await once(instance, 'listening');
    t.after(() => instance.close());
    const { port: taken } = instance.address() as AddressInfo;
    await using scene = await Scene.open({ SKERRY_GATEWAY_UPSTREAM_HTTPS_PORT: String(taken) });
    scene.core.putQuietly(running);
    await scene.start();
    await scene.untilActive();
    let isStopped = false;
    void scene.stopped.then(() => {
      isStopped = true;
    });
    const [http, https, api] = scene.urls.map((url) => new URL(url).port);
    const hello = helloWire({ serverName: HOST });
    const ports = {
      SKERRY_GATEWAY_HTTP_PORT: http,
      SKERRY_GATEWAY_HTTPS_PORT: https,
      SKERRY_GATEWAY_API_PORT: api,
    };
    for (const wrong of Object.keys(ports)) {
      const settings = { ...scene.settings, ...ports, SKERRY_GATEWAY_REPLACE: 'yes', [wrong]: String(taken) };
      const config = readConfig(gatewayService.config, settings);
      const { signal } = new AbortController();
      await assert.rejects(gatewayService.start(config, { log, signal }), { code: 'PORT_IN_USE' }, wrong);
      assert.equal(await scene.visit(), `for ${HOST}`, wrong);
      assert.equal((await scene.api('/api/status')).status, 200, wrong);
      const client = await openClient(Number(https));
      client.write(hello);
      assert.deepEqual(await readBytes(client, hello.length), Buffer.from(hello), wrong);
      client.destroy();
    }
    assert.equal(isStopped, false);
  });

  test('transfers last through route changes and an upgrade of the gateway', async () => {
    const said: string[] = [];
    await checkUpgrade({ transfers: 200, changes: 1000, bytes: 100_000 }, (line) => said.push(line));
    assert.match(said.at(-1)!, / 0 of 210 transfers broken/);
  });
});
