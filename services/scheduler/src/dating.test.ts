import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AppError } from '@skerry/protocol';
import { Dating } from './dating.ts';

const { signal } = new AbortController();

test('a decision is dated after those of an earlier process, whose clock was ahead; none is sent before they are known', async () => {
  const answers = [() => Promise.reject(new AppError('OVERLOADED', 'away')), async () => 5_000];
  let asked = 0;
  const dating = new Dating(
    () => 1_000,
    () => answers[asked++]!(),
  );
  const sent: number[] = [];
  const send = async (decidedAtMs: number) => void sent.push(decidedAtMs);
  await assert.rejects(dating.date(send, signal), /away/);
  await dating.date(send, signal);
  await dating.date(send, signal);
  assert.deepEqual([sent, asked], [[5_001, 5_002], 2]);
});

test('a date that nobody took binds nothing', async () => {
  let nowMs = 9_000;
  const dating = new Dating(
    () => nowMs,
    async () => 0,
  );
  await assert.rejects(dating.date(() => Promise.reject(new Error('refused')), signal));
  nowMs = 1_000;
  const sent: number[] = [];
  await dating.date(async (decidedAtMs) => void sent.push(decidedAtMs), signal);
  assert.deepEqual(sent, [1_000]);
});

test('who speaks again dates its decisions after those that others dated meanwhile', async () => {
  let latestMs = 0;
  let onAsked = () => {};
  const dating = new Dating(
    () => 1_000,
    async () => {
      const foundMs = latestMs;
      onAsked();
      return foundMs;
    },
  );
  const sent: number[] = [];
  const send = async (decidedAtMs: number) => void sent.push(decidedAtMs);
  await dating.date(send, signal);
  latestMs = 5_000;
  await dating.date(send, signal);
  dating.takeOver();
  await dating.date(send, signal);
  // It comes to speak once more while it asks what was dated before.
  onAsked = () => {
    onAsked = () => {};
    latestMs = 9_000;
    dating.takeOver();
  };
  dating.takeOver();
  await dating.date(send, signal);
  assert.deepEqual(sent, [1_000, 1_001, 5_001, 9_001]);
});
