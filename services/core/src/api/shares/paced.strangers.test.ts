import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Paced } from './paced.ts';

const client = (key: string, isExempt = false) => ({ key, isExempt });
const { signal } = new AbortController();

test('who asks in a loop for what costs much has it a quarter of the time; others have their turn, and our own wait for nobody', async () => {
  let nowMs = 0;
  const resting: { readonly act: () => void; readonly ms: number }[] = [];
  const paced = new Paced(
    {
      running: { total: 2, reserve: 0, perClient: 1 },
      waiting: { total: 10, reserve: 0, perClient: 4 },
      ...{ waitMs: 60_000, what: 'pages', retryAfter: 1 },
    },
    { now: () => nowMs, later: (act, ms) => void resting.push({ act, ms }) },
  );
  const ran: string[] = [];
  const run = (key: string, tookMs: number, isExempt = false) =>
    paced.run(
      client(key, isExempt),
      async () => {
        ran.push(key);
        nowMs += tookMs;
      },
      signal,
    );
  await run('a', 40);
  assert.deepEqual(
    resting.map(({ ms }) => ms),
    [120],
  );
  const waiting = [run('a', 40), run('a', 40)];
  await run('b', 10_000);
  assert.equal(resting[1]!.ms, 2_000, 'nobody waits for ever');
  await run('own', 40, true);
  assert.deepEqual(ran, ['a', 'b', 'own']);
  resting[0]!.act();
  await waiting[0];
  assert.deepEqual([ran.length, resting.length], [4, 3]);
  resting[2]!.act();
  await waiting[1];
  assert.deepEqual(ran, ['a', 'b', 'own', 'a', 'a']);
});

test('what fails rests as well', async () => {
  const resting: (() => void)[] = [];
  const paced = new Paced(
    {
      running: { total: 1, reserve: 0, perClient: 1 },
      waiting: { total: 1, reserve: 0, perClient: 1 },
      ...{ waitMs: 60_000, what: 'pages', retryAfter: 1 },
    },
    { now: () => 0, later: (act) => void resting.push(act) },
  );
  await assert.rejects(
    paced.run(client('a'), () => Promise.reject(new Error('failed')), signal),
    /failed/,
  );
  const second = paced.run(client('a'), async () => 'done', signal);
  await assert.rejects(
    paced.run(client('a'), async () => {}, signal),
    { code: 'RATE_LIMITED' },
  );
  resting[0]!();
  assert.equal(await second, 'done');
});
