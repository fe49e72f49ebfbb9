import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { test } from 'node:test';
import { serving } from '@skerry/kit/testing/serving';
import { anything } from '../pure/read.ts';
import { ask } from './ask.ts';
import { failureOf, pauseAfter } from './failure.ts';
import { runProgram } from './run.ts';

// What a browser has.
Object.defineProperty(globalThis, 'location', { value: { href: 'http://127.0.0.1/' } });
Object.defineProperty(navigator, 'onLine', { value: true });

const { signal } = new AbortController();

/** A service that answers as a test says. */
function serve(answer: (response: ServerResponse) => void) {
  return serving((request, response) => {
    request.resume();
    answer(response);
  });
}

test('an answer that breaks off is told as a service that cannot be reached', async () => {
  await using service = await serve((response) => {
    response.writeHead(200, { 'net-program-outcome': 'answered' });
    response.write('{"half":', () => response.destroy());
  });
  const broken = { code: 'UPSTREAM_UNAVAILABLE', message: /broke its answer off/ };
  await assert.rejects(ask(service.url, anything, signal), broken);
  await assert.rejects(runProgram(service.url, 'a'.repeat(64), {}, signal), broken);
});

test('of an answer that is too large the rest is not read', async () => {
  const ended = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let turn = 0;
  await using service = await serve((response) => {
    const end = ended[turn++]!.resolve;
    const chunk = Buffer.alloc(1024 ** 2, 32);
    // More than can be shown, and no end, unless the reader goes.
    let left = 48;
    const more = () => {
      while (left-- > 0 && response.write(chunk));
    };
    response.on('drain', more).once('close', end);
    more();
  });
  const tooLarge = { code: 'UNEXPECTED_ANSWER' };
  await assert.rejects(ask(service.url, anything, signal), tooLarge);
  await assert.rejects(runProgram(service.url, 'a'.repeat(64), {}, signal), tooLarge);
  await Promise.all(ended.map(({ promise }) => promise));
});

test('a question that its reader gave up is no failure of the service', async () => {
  await using service = await serve((response) => response.end('{"a":1}'));
  assert.deepEqual(await ask(service.url, anything, signal), { a: 1 });
  const given = AbortSignal.abort(new Error('the reader left'));
  for (const given_up of [
    ask(service.url, anything, given),
    runProgram(service.url, 'a'.repeat(64), {}, given),
  ])
    await assert.rejects(given_up, /the reader left/);
});

test('a service that has no time is asked again when it said, and people are told when', async () => {
  let details: unknown = { retry_after: 41.5 };
  let header: string | undefined;
  await using service = await serve((response) => {
    response.statusCode = 429;
    if (header !== undefined) response.setHeader('retry-after', header);
    response.end(JSON.stringify({ status: 'error', code: 'RATE_LIMITED', error: 'too many', details }));
  });
  const fail = (body?: unknown) =>
    ask(service.url, anything, signal, { body }).then(
      () => assert.fail('it was answered'),
      (error: unknown) => failureOf(error),
    );
  const asked = await fail();
  assert.equal(asked.remedy, 'It is asked again by itself after 42 s.');
  assert.equal(pauseAfter(asked, 5_000), 42_000);
  assert.equal((await fail({})).remedy, 'Try again in 42 s.');
  details = { retry_after: 1e9 };
  assert.equal(pauseAfter(await fail(), 5_000), 300_000);
  details = { retry_after: 1 };
  assert.equal(pauseAfter(await fail(), 5_000), 5_000);
  [details, header] = [undefined, '9'];
  assert.equal(pauseAfter(await fail(), 5_000), 9_000, 'the header says it where the body does not');
  header = 'Sat, 28 Nov 2026 00:00:00 GMT';
  for (const odd of [undefined, { retry_after: 'soon' }, { retry_after: -1 }]) {
    details = odd;
    const failure = await fail();
    assert.deepEqual(
      [failure.remedy, pauseAfter(failure, 5_000), pauseAfter(failure, 1e9)],
      [undefined, 5_000, 30_000],
    );
  }
});
