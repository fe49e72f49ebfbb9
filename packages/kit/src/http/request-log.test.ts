import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLogger } from '../daemon/log.ts';
import { createHttpServer } from './server.ts';

test('a request has a log of its own only where it writes a line, which says its id', async () => {
  const lines: { request_id?: string; msg: string; secret?: string }[] = [];
  const log = createLogger('test', 'info', { write: (line) => void lines.push(JSON.parse(line)) });
  let made = 0;
  const makeChild = log.child;
  log.child = function (this: typeof log, ...args: Parameters<typeof log.child>) {
    made++;
    return makeChild.apply(this, args);
  } as typeof log.child;
  await using app = await createHttpServer({ log });
  app.get('/quiet', async (request) => {
    request.log.debug('below the level');
    return {};
  });
  app.get('/loud', async (request) => {
    request.log.info({ secret: 'hidden' }, 'one');
    request.log.child({ part: 'two' }).warn('two');
    return {};
  });
  await app.ready();
  made = 0;
  assert.equal((await app.inject('/quiet')).statusCode, 200);
  assert.equal(made, 0);
  const { headers } = await app.inject('/loud');
  assert.deepEqual(
    lines.map(({ request_id, msg, secret }) => [request_id, msg, secret]),
    [
      [headers['x-request-id'], 'one', '(hidden)'],
      [headers['x-request-id'], 'two', undefined],
    ],
  );
});
