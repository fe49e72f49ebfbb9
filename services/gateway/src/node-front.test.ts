import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { test } from 'node:test';
import { createHttpServer, createLogger, listen, readConfig, serve } from '@skerry/kit';
import { NODE_API } from '@skerry/protocol/api/compute/node';
import { openClient, readBytes, until } from './dataplane/testing/suite/world.ts';
import { gatewayService } from './index.ts';
import { HASH, log, Scene } from './testing/scene.ts';
import { helloWire } from './tls/testing/hello.ts';

const NAME = 'www.custom.test';
const PROXY_SIGNATURE = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1');

/** A compute node that tells one custom domain, and the front beside it. */
async function openFront(settings: Record<string, string> = {}) {
  await using stack = new AsyncDisposableStack();
  const node = stack.adopt(await createHttpServer({ log }), (server) => server.close());
  const wish: { proxy_protocol?: boolean } = {};
  serve(node, NODE_API.listDomainRoutes, () => [
    { name: NAME, item_hash: HASH, ipv6: '::1', ipv4: { public: null, local: null }, ...wish },
  ]);
  const SKERRY_GATEWAY_NODE_URL = await listen(node, '127.0.0.1', 0);
  const scene = stack.use(await Scene.open({ SKERRY_GATEWAY_NODE_URL, ...settings }));
  const opened = stack.move();
  return { node, scene, wish, [Symbol.asyncDispose]: () => opened.disposeAsync() };
}

test("a node's front routes as soon as it listens, also where the node does not answer any more", async () => {
  await using front = await openFront();
  const { node, scene } = front;
  await scene.start();
  assert.equal(await scene.visit(NAME), `for ${NAME}`);
  await scene.stop();
  await node.close();
  await scene.start();
  assert.equal(await scene.visit(NAME), `for ${NAME}`);
  assert.match(await scene.visit('other.custom.test'), /No instance on this node/);
});

test("a node's front writes the access log", async () => {
  await using front = await openFront({ SKERRY_GATEWAY_ACCESS_LOG: 'full' });
  const lines: string[] = [];
  front.scene.log = createLogger('test', 'info', { write: (line: string) => void lines.push(line) });
  await front.scene.start();
  await front.scene.visit(NAME);
  await until(() => lines.some((line) => line.includes('"msg":"request"') && line.includes(NAME)));
});

test("a node's front begins connections with a PROXY protocol header where the instance asks for it", async (t) => {
  const instance = createTcpServer((socket) => void socket.on('error', () => {}).pipe(socket));
  await once(instance.listen(0, '::1'), 'listening');
  t.after(() => instance.close());
  const { port } = instance.address() as AddressInfo;
  await using front = await openFront({ SKERRY_GATEWAY_UPSTREAM_HTTPS_PORT: String(port) });
  front.wish.proxy_protocol = true;
  await front.scene.start();
  const client = await openClient(Number(new URL(front.scene.urls[1]!).port));
  client.write(helloWire({ serverName: NAME }));
  const bytes = await readBytes(client, PROXY_SIGNATURE.length);
  assert.deepEqual(bytes.subarray(0, PROXY_SIGNATURE.length), PROXY_SIGNATURE);
  client.destroy();
});

test('a front whose data directory a gateway has, too, is replaced by its own successor', async () => {
  await using front = await openFront();
  const { scene } = front;
  await scene.start();
  const start = (settings: Record<string, string>) =>
    gatewayService.start(readConfig(gatewayService.config, { ...scene.settings, ...settings }), {
      log,
      signal: new AbortController().signal,
    });
  await using _beside = await start({ SKERRY_GATEWAY_NODE_URL: '' });
  const [http = '', https = ''] = scene.urls.map((url) => new URL(url).port);
  await using _successor = await start({
    SKERRY_GATEWAY_HTTP_PORT: http,
    SKERRY_GATEWAY_HTTPS_PORT: https,
    SKERRY_GATEWAY_REPLACE: 'yes',
  });
  await scene.stopped;
  assert.equal(await scene.visit(NAME), `for ${NAME}`);
});
