import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createOutput } from '../output/output.ts';
import { waitForRequest } from './request-wait.ts';

const HASH = 'a1'.repeat(32);
const output = createOutput(process.stdout, process.stderr, { json: false, colours: false });
const settled = (reason: { code: string; message: string } | null) => ({
  item_hash: HASH,
  reason,
  settled_at: 1,
});

test('a request is waited for until it is done, is refused, or took too long, and each is told', async () => {
  const answers = [[], [{ ...settled(null), item_hash: 'b2'.repeat(32) }], [settled(null)]];
  const wait = (answer: () => ReturnType<typeof settled>[], limitMs?: number) =>
    waitForRequest(
      output,
      { url: 'http://core', listIndexRequests: () => Promise.resolve(answer()) },
      { address: '0x12', hash: HASH },
      limitMs,
    );
  await wait(() => answers.shift()!);
  assert.equal(answers.length, 0);
  await assert.rejects(
    wait(() => [settled({ code: 'WATCH_LIMIT_REACHED', message: 'one owner can have 20' })]),
    { code: 'WATCH_LIMIT_REACHED', message: 'one owner can have 20', details: { item_hash: HASH } },
  );
  await assert.rejects(
    wait(() => [settled({ code: 'OF_A_NEWER_NODE', message: 'no' })]),
    { code: 'UNEXPECTED_ANSWER', message: /no \(OF_A_NEWER_NODE\)/ },
  );
  await assert.rejects(
    wait(() => [], 0),
    { code: 'TIMED_OUT', message: /http:\/\/core .*a1a1/ },
  );
});
