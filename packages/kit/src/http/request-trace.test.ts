import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { pino } from 'pino';
import { createHttpObserver, createMetrics } from './metrics.ts';
import { createHttpServer } from './server.ts';

interface Line {
  readonly level: number;
  readonly msg: string;
  readonly request_id: string;
  readonly route?: string;
}

async function traced() {
  const lines: Line[] = [];
  const sink = new PassThrough();
  sink.on('data', (chunk: Buffer) =>
    lines.push(
      ...chunk
        .toString()
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as Line),
    ),
  );
  const metrics = await createMetrics({ service: 'test', isProcess: false });
  const log = pino({ level: 'debug' }, sink);
  const app = await createHttpServer({ log, observer: createHttpObserver(metrics) });
  app.get('/things/:id', async () => ({}));
  app.get('/slow', { config: { slowAfterMs: -1 } }, async () => ({}));
  app.get('/bug', async (request) => {
    request.log.info('before');
    throw new TypeError('inside');
  });
  return { app, lines, metrics, [Symbol.asyncDispose]: () => app.close() };
}

describe('a request is traced', () => {
  test('by an id that its answer, its lines in the log and the body of a fault carry', async () => {
    await using one = await traced();
    const bug = await one.app.inject({ url: '/bug', headers: { 'x-request-id': 'caller-1.a_b' } });
    assert.equal(bug.headers['x-request-id'], 'caller-1.a_b');
    assert.deepEqual(bug.json().details, { request_id: 'caller-1.a_b' });
    assert.deepEqual(
      one.lines.map((line) => [line.msg, line.request_id]),
      ['before', 'a request failed', 'request'].map((text) => [text, 'caller-1.a_b']),
    );
    const none = await one.app.inject({ url: '/none' });
    assert.match(String(none.headers['x-request-id']), /^[0-9a-f-]{36}$/);
  });

  test('an id that is too long or holds anything else is replaced', async () => {
    await using one = await traced();
    const id = fc
      .string({ minLength: 1, maxLength: 80 })
      .filter((text) => !/^[A-Za-z0-9._-]{1,64}$/.test(text));
    await fc.assert(
      fc.asyncProperty(id, async (given) => {
        const { headers } = await one.app.inject({ url: '/slow', headers: { 'x-request-id': given } });
        assert.match(String(headers['x-request-id']), /^[0-9a-f-]{36}$/);
      }),
      { numRuns: 30 },
    );
  });

  test('one line each: debug, or a warning where it was slow; the route is its pattern', async () => {
    await using one = await traced();
    await one.app.inject({ url: '/things/1?secret=2' });
    await one.app.inject({ url: '/slow' });
    await one.app.inject({ url: '/none/whatever' });
    assert.deepEqual(
      one.lines.map((line) => [line.level, line.msg, line.route]),
      [
        [20, 'request', '/things/:id'],
        [40, 'a slow request', '/slow'],
        [20, 'request', 'none'],
      ],
    );
  });

  test('counts by pattern, class of status and code: any path makes no new series', async () => {
    await using one = await traced();
    for (let n = 0; n < 20; n++) {
      await one.app.inject({ url: `/things/${n}` });
      await one.app.inject({ url: `/none/${n}` });
    }
    await one.app.inject({ url: '/bug' });
    const text = await one.metrics.text();
    assert.match(text, /^skerry_http_requests_total\{method="GET",route="\/things\/:id",status="2xx"\} 20$/m);
    assert.match(text, /^skerry_http_requests_total\{method="GET",route="none",status="4xx"\} 20$/m);
    assert.match(text, /^skerry_refusals_total\{code="ROUTE_NOT_FOUND"\} 20$/m);
    assert.match(text, /^skerry_refusals_total\{code="INTERNAL"\} 1$/m);
    assert.match(text, /^skerry_http_request_duration_seconds_count\{method="GET",route="\/bug"\} 1$/m);
    assert.match(text, /^skerry_build_info\{service="test",version="[^"]+"\} 1$/m);
    assert.equal(text.includes('/things/1'), false);
  });
});
