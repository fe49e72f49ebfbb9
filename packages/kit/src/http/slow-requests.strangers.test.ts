import assert from 'node:assert/strict';
import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { createLogger } from '../daemon/log.ts';
import { SlowRequests } from './request-trace.ts';
import { createHttpServer } from './server.ts';

interface Line {
  readonly msg: string;
  readonly count?: number;
  readonly routes?: Readonly<Record<string, number>>;
  readonly slowest_ms?: number;
}

test('F9: a thousand slow requests are one line and a count for each period, not a thousand lines', async (t) => {
  // A period ends when the test says so.
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const lines: Line[] = [];
  const log = createLogger('test', 'info', { write: (text: string) => void lines.push(JSON.parse(text)) });
  const app = await createHttpServer({ log });
  app.get('/slow', { config: { slowAfterMs: -1 } }, async () => ({}));
  for (let n = 0; n < 1_000; n++) await app.inject('/slow');
  assert.deepEqual(
    lines.map(({ msg }) => msg),
    ['a slow request'],
  );
  t.mock.timers.tick(60_000);
  assert.deepEqual(
    lines.slice(1).map(({ msg, count }) => [msg, count]),
    [['slow requests', 999]],
  );
  t.mock.timers.reset();
  await app.close();
});

test('F9: the count says which routes were slow, and how slow', async () => {
  const sink = new PassThrough();
  const slow = new SlowRequests(createLogger('test', 'info', sink), 20);
  let told = 0;
  for (let n = 0; n < 100; n++) slow.note(`GET /${n % 30}`, n, () => told++);
  const timer = setInterval(() => {}, 1_000);
  const [text] = (await once(sink, 'data')) as [Buffer];
  clearInterval(timer);
  const { msg, count, routes, slowest_ms } = JSON.parse(text.toString()) as Line;
  assert.deepEqual([told, msg, count, slowest_ms], [1, 'slow requests', 99, 99]);
  assert.deepEqual([Object.keys(routes!).length, routes!['GET /1'], routes!.others], [21, 4, 30]);
});
