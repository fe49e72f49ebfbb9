import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compareUntilSame, countNewer, toLookAt } from './core-node.ts';

type Compared = Awaited<ReturnType<typeof compareUntilSame>>;
const FORGOTTEN = { onlyFirst: [], onlySecond: [], otherwise: [] };
const SAME: Compared = {
  ...{ onlyFirst: [], onlySecond: [], forgotten: FORGOTTEN },
  ...{ parts: [], trust: [], newer: 0, isSame: true },
};
const JUST_SENT: Compared = { ...SAME, parts: ['messages'], isSame: false };
const nobody = { value: [], source: 'unset' };
const OTHER_TRUST: Compared = {
  ...JUST_SENT,
  trust: [{ name: 'schedulers', first: nobody, second: { value: ['0x1'], source: 'setting' } }],
};

/** What is found at last, and how often it was looked and rested. */
async function lookAt(...answers: Compared[]) {
  let [looks, rests] = [0, 0];
  const found = await compareUntilSame(
    async () => answers[Math.min(looks++, answers.length - 1)]!,
    async () => void rests++,
  );
  return [found, looks, rests];
}

test('a message that is at one node for a moment is no difference', async () => {
  assert.deepEqual(await lookAt(SAME), [SAME, 1, 0]);
  assert.deepEqual(await lookAt(JUST_SENT, JUST_SENT, SAME), [SAME, 3, 2]);
});

test('what stays different is told after four looks; other trust at once, since it stays', async () => {
  assert.deepEqual(await lookAt(JUST_SENT), [JUST_SENT, 4, 3]);
  assert.deepEqual(await lookAt(OTHER_TRUST), [OTHER_TRUST, 1, 0]);
});

test('messages that are newer than the last session of the node that lacks them are on their way', () => {
  const at = (time: number) => ({ hash: `${time}`, time });
  const peerOf = (syncedMs: number | null) => ({
    ...{ name: 'peer', address: null, state: 'synced' as const, messages: 3, later: 0, taken: 0, given: 0 },
    ...{ synced_ms: syncedMs, failure: null, points: 0, offset_ms: null },
  });
  const lacks = [at(99), at(101), at(102.5)];
  assert.equal(countNewer(lacks, [peerOf(100_000), peerOf(null), peerOf(50_000)]), 2);
  // It never came to the end of a session: what it lacks is no matter of seconds.
  assert.equal(countNewer(lacks, [peerOf(null)]), 0);
  assert.equal(countNewer(lacks, []), 0);
});

test('the status of a node tells what is wrong with its trust and which roles are vacant, also of a node that does not say', () => {
  const ok = { status: 'ok' } as const;
  const checks = {
    ...{ database: ok, trust: ok },
    disk: { ...ok, free_bytes: 1, reserve_bytes: 1, takes_writes: true },
    pipeline: { ...ok, queued: 0 },
    peers: { ...ok, state: 'synced' },
    clock: { ...ok, offset_ms: 0 },
  } as const;
  assert.equal(toLookAt({ checks }), undefined);
  const roles = { status: 'degraded', reason: 'no process has the role write' } as const;
  assert.equal(toLookAt({ checks: { ...checks, roles } }), roles.reason);
  const trust = { status: 'degraded', reason: 'peers differ' } as const;
  assert.equal(toLookAt({ checks: { ...checks, roles, trust } }), `peers differ; ${roles.reason}`);
});
