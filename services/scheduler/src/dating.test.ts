import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AppError } from '@skerry/protocol';
import { createDating } from './dating.ts';

test('a decision is dated after those of an earlier process, whose clock was ahead; none is sent before they are known', async () => {
  const answers = [() => Promise.reject(new AppError('OVERLOADED', 'away')), async () => 5_000];
  let asked = 0;
  const dating = createDating(
    () => 1_000,
    () => answers[asked++]!(),
  );
  const sent: number[] = [];
  const send = async (decidedAtMs: number) => void sent.push(decidedAtMs);
  await assert.rejects(dating(send), /away/);
  await dating(send);
  await dating(send);
  assert.deepEqual([sent, asked], [[5_001, 5_002], 2]);
});

test('a date that nobody took binds nothing', async () => {
  let nowMs = 9_000;
  const dating = createDating(
    () => nowMs,
    async () => 0,
  );
  await assert.rejects(dating(() => Promise.reject(new Error('refused'))));
  nowMs = 1_000;
  const sent: number[] = [];
  await dating(async (decidedAtMs) => void sent.push(decidedAtMs));
  assert.deepEqual(sent, [1_000]);
});
