import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, get, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { createLogger } from '../daemon/log.ts';
import { listen } from './listen.ts';
import { createHttpServer } from './server.ts';

const log = createLogger('test', 'silent');

async function ask(url: string, agent: Agent): Promise<IncomingMessage & { body: string }> {
  const [response] = (await once(get(url, { agent }), 'response')) as [IncomingMessage];
  return Object.assign(response, { body: await text(response) });
}

test('closing: running requests finish and say that the connection ends; idle ones and the listener end at once', async () => {
  const app = await createHttpServer({ log });
  const started = Promise.withResolvers<void>();
  const release = Promise.withResolvers<void>();
  app.get('/quick', async () => ({ quick: true }));
  app.get('/running', async () => {
    started.resolve();
    await release.promise;
    return { finished: true };
  });
  const url = await listen(app, '127.0.0.1', 0);
  const idle = new Agent({ keepAlive: true });
  const busy = new Agent({ keepAlive: true });
  assert.equal((await ask(`${url}/quick`, idle)).headers.connection, 'keep-alive');
  const [idleSocket] = Object.values(idle.freeSockets).flat();
  const running = ask(`${url}/running`, busy);
  await started.promise;
  const idleEnded = once(idleSocket!, 'close');
  const closed = app.close();
  await idleEnded;
  const [refused] = (await once(connect(Number(new URL(url).port), '127.0.0.1'), 'error')) as [Error];
  assert.match(refused.message, /ECONNREFUSED/);
  release.resolve();
  const answer = await running;
  assert.deepEqual(
    [answer.statusCode, answer.headers.connection, answer.body],
    [200, 'close', '{"finished":true}'],
  );
  await closed;
});

test('what does not finish by the deadline is cut off, so that closing ends', async () => {
  const app = await createHttpServer({ log, drainMs: 50 });
  const started = Promise.withResolvers<void>();
  app.get('/forever', async () => {
    started.resolve();
    await new Promise(() => {});
  });
  const url = await listen(app, '127.0.0.1', 0);
  const running = ask(`${url}/forever`, new Agent());
  await started.promise;
  await Promise.all([app.close(), assert.rejects(running, /ECONNRESET|socket hang up/)]);
});
