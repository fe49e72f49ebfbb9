import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { after, before, describe, test } from 'node:test';
import { createLogger } from '../daemon/log.ts';
import { listen } from '../http/listen.ts';
import { createHttpServer, type HttpServer } from '../http/server.ts';
import { listOfMost } from './bodies.ts';

const KIB = 1024;
const OWN = '127.0.0.9';

describe('bodies of many clients', () => {
  let app: HttpServer;
  let url: string;
  before(async () => {
    app = await createHttpServer({
      log: createLogger('test', 'fatal'),
      limits: {
        isEnabled: true,
        perMinute: { general: 1_000, authenticated: 1_000, heavy: 1_000 },
        trustedProxies: [],
        exempt: [OWN],
      },
      bodyLimitBytes: 64 * KIB,
      bodies: { total: 256 * KIB, reserve: 64 * KIB, perClient: 128 * KIB },
    });
    app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
    app.post('/', { config: { rateClass: 'general' } }, async ({ body }) => ({
      bytes: (body as Buffer).length,
    }));
    url = await listen(app, '127.0.0.1', 0);
  });
  after(() => app.close());

  const ask = (localAddress: string, headers: Record<string, string | number>) =>
    request(url, { method: 'POST', localAddress, agent: false, headers }).on('error', () => {});
  async function answerTo(asked: ClientRequest) {
    const [response] = (await once(asked, 'response')) as [IncomingMessage];
    let text = '';
    for await (const chunk of response) text += chunk;
    const { bytes, code } = JSON.parse(text);
    return bytes ?? `${response.statusCode} ${code} ${response.headers['retry-after']}`;
  }
  /** All of it at once. */
  const send = (localAddress: string, bytes: number) => {
    const asked = ask(localAddress, { 'content-length': bytes });
    asked.end(Buffer.alloc(bytes));
    return answerTo(asked);
  };
  /** Begins, and says no more for now. */
  async function begin(
    localAddress: string,
    headers: Record<string, string | number>,
  ): Promise<ClientRequest> {
    const arrived = once(app.server, 'request');
    const asked = ask(localAddress, headers);
    asked.write('x');
    await arrived;
    return asked;
  }

  test('one that has many on their way leaves room for others, and strangers together for our own', async () => {
    const length = { 'content-length': 64 * KIB };
    const held = [
      await begin('127.0.0.2', length),
      await begin('127.0.0.2', { 'transfer-encoding': 'chunked' }),
    ];
    assert.equal(await send('127.0.0.2', 64 * KIB), '429 RATE_LIMITED 1');
    assert.equal(await send('127.0.0.2', 8 * KIB), 8 * KIB, 'small ones are not counted');
    assert.equal(await send('127.0.0.3', 64 * KIB), 64 * KIB);
    held.push(await begin('127.0.0.3', length));
    assert.equal(await send('127.0.0.3', 64 * KIB), '503 OVERLOADED 1', 'it has one on its way');
    const ended = new Promise((resolve) => held[0]!.once('close', resolve));
    assert.equal(await send('127.0.0.4', 64 * KIB), 64 * KIB, 'who has none takes the room of who has most');
    await ended;
    held.push(await begin('127.0.0.4', length));
    assert.equal(await send('127.0.0.5', 64 * KIB), '503 OVERLOADED 1', 'nobody has more than that');
    assert.equal(await send(OWN, 64 * KIB), 64 * KIB);
    // What is answered, or hung up on, is given back.
    held[1]!.end();
    assert.equal(await answerTo(held[1]!), 1);
    assert.equal(await send('127.0.0.2', 64 * KIB), 64 * KIB);
    for (const one of held) one.destroy();
    // The server hears of it a moment later.
    for (const other of ['127.0.0.4', '127.0.0.2'])
      while ((await send(other, 64 * KIB)) !== 64 * KIB) await new Promise(setImmediate);
  });
});

test('the bodies of the client that has most are those that may go, if they are more than is asked for', () => {
  const body = (key: string, bytes: number) => ({ key, bytes });
  const all = [body('a', 2), body('b', 4), body('a', 3), body('c', 5)];
  assert.deepEqual(listOfMost(all, 4), [all[0], all[2]], 'of equals the first that has so much');
  assert.deepEqual(listOfMost(all, 5), []);
  assert.deepEqual(listOfMost([...all, body('b', 2)], 5), [all[1], body('b', 2)]);
});
