import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createHttpServer, createLogger, listen, serve } from '@skerry/kit';
import { NODE_API } from '@skerry/protocol/api/compute/node';
import { until } from './dataplane/testing/suite/world.ts';
import { HASH, log, Scene } from './testing/scene.ts';

const NAME = 'www.custom.test';

/** A compute node that tells one custom domain, and the front beside it. */
async function openFront(settings: Record<string, string> = {}) {
  await using stack = new AsyncDisposableStack();
  const node = stack.adopt(await createHttpServer({ log }), (server) => server.close());
  serve(node, NODE_API.listDomainRoutes, () => [
    { name: NAME, item_hash: HASH, ipv6: '::1', ipv4: { public: null, local: null } },
  ]);
  const SKERRY_GATEWAY_NODE_URL = await listen(node, '127.0.0.1', 0);
  const scene = stack.use(await Scene.open({ SKERRY_GATEWAY_NODE_URL, ...settings }));
  const opened = stack.move();
  return { node, scene, [Symbol.asyncDispose]: () => opened.disposeAsync() };
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
