import assert from 'node:assert/strict';
import { test } from 'node:test';
import { signMessage } from '@skerry/client';
import { createLogger, listen } from '@skerry/kit';
import { LIMITS } from '@skerry/protocol';
import { createTestCore, signers, type TestCore } from '../../testing/core.ts';
import {
  adviseOnClock,
  adviseOnNewest,
  decideClock,
  NetworkClock,
  offsetOf,
  ROUND_TRIP_MAX_MS,
} from './clock.ts';
import { createHttpLink, type PeerLink } from './link.ts';

const { alice } = signers;
const HOUR_MS = 3_600_000;
const signal = new AbortController().signal;
const log = createLogger('clock', 'silent');
const note = (n: number, timestamp?: number) => ({
  type: 'POST',
  content: { type: 'note', content: { n } },
  ...(timestamp === undefined ? {} : { timestamp }),
});

interface Fetches {
  messages: number;
  pages: number;
}

/** A peer over HTTP, and how often messages are fetched from it. */
async function linkOver(core: TestCore): Promise<{ link: PeerLink; fetches: Fetches }> {
  const link = createHttpLink(await listen(core.api, '127.0.0.1', 0));
  const fetches = { messages: 0, pages: 0 };
  return {
    fetches,
    link: {
      ...link,
      fetchMessages: (keys, end) => {
        fetches.messages++;
        return link.fetchMessages(keys, end);
      },
      fetchPage: (place, end) => {
        fetches.pages++;
        return link.fetchPage(place, end);
      },
    },
  };
}

const round = (core: TestCore) => core.rooms.sync.syncer.round(signal);
const statusOf = async (core: TestCore) => (await core.get('/sync/status')).body;
const healthOf = async (core: TestCore) => (await core.get('/health')).body;

/** Enough that a transfer begins. */
const MANY = 5_100;
const EARLY = 4;

async function sendMany(core: TestCore): Promise<void> {
  const nowSeconds = Math.floor(Date.now() / 1000);
  const send = async (n: number) => {
    const timestamp = n < EARLY ? nowSeconds - 2 * 3_600 : nowSeconds;
    const { body } = signMessage(note(n, timestamp), alice);
    const { peer } = core.rooms.intake;
    // As from a peer, which had the early ones in time.
    await peer.keep(await peer.read([Buffer.from(body)]));
  };
  await Promise.all(Array.from({ length: MANY }, (_, n) => send(n)));
}

test('F3: a node whose clock is an hour slow is not synced, says why, and does not transfer again and again', async () => {
  await using right = await createTestCore();
  await sendMany(right);
  const { link, fetches } = await linkOver(right);
  let slowMs = HOUR_MS;
  await using slow = await createTestCore({ peers: [link], now: () => Date.now() - slowMs });
  await round(slow);
  const status = await statusOf(slow);
  assert.deepEqual([status.messages, status.state], [EARLY, 'syncing']);
  assert.equal(status.later, MANY - EARLY);
  assert.equal(status.clock.state, 'unsure');
  assert.ok(Math.abs(status.clock.offset_ms - HOUR_MS) < ROUND_TRIP_MAX_MS, `${status.clock.offset_ms}`);
  const health = await healthOf(slow);
  assert.equal(health.status, 'degraded');
  assert.match(
    health.checks.clock.reason,
    /^this server's clock is 3[56]\d\d s behind .* time synchronisation/,
  );
  const before = { ...fetches };
  for (let n = 0; n < 3; n++) await round(slow);
  assert.deepEqual(fetches, before, 'nothing is fetched that would not be taken');
  assert.equal((await statusOf(slow)).later, MANY - EARLY);

  slowMs = 0;
  assert.ok(await round(slow));
  const healed = await statusOf(slow);
  assert.deepEqual(
    [healed.state, healed.messages, healed.later, healed.clock.state],
    ['synced', MANY, 0, 'right'],
  );
  assert.equal((await healthOf(slow)).checks.clock.status, 'ok');
});

test('F3: a node whose clock is wrong goes by the median of two peers and itself, whichever way it is wrong', async () => {
  await using first = await createTestCore();
  await using second = await createTestCore();
  const links = [(await linkOver(first)).link, (await linkOver(second)).link];
  for (let n = 0; n < 5; n++) await first.send(alice, note(n));
  await using slow = await createTestCore({ peers: links, now: () => Date.now() - HOUR_MS });
  await round(slow);
  await round(slow);
  const status = await statusOf(slow);
  assert.deepEqual(
    [status.state, status.messages, status.later, status.clock.state],
    ['synced', 5, 0, 'off'],
  );
  const { status: how, checks } = await healthOf(slow);
  assert.deepEqual([how, checks.clock.status], ['degraded', 'degraded']);
  assert.match(checks.clock.reason, /behind the median of 3 clocks/);
  assert.match(await await slow.rooms.metrics.text(), /skerry_clock_offset_seconds\{?.*\}? 3[56]\d\d/);

  await using fast = await createTestCore({ peers: links, now: () => Date.now() + HOUR_MS });
  await round(fast);
  // What its peers would refuse it refuses itself: what it acknowledged would be nowhere else for most of an hour.
  const ahead = Math.floor(Date.now() / 1000) + LIMITS.futureSeconds + 1_800;
  for (const node of [first, fast]) {
    const { status: code, body } = await node.send(alice, note(9, ahead));
    assert.deepEqual([code, body.code], [400, 'TIMESTAMP_IN_FUTURE']);
  }
  assert.match((await healthOf(fast)).checks.clock.reason, /ahead of the median of 3 clocks/);
});

test('F3: clocks vote, and a peer that lies moves nothing', () => {
  const stateOf = (...peers: number[]) => decideClock(peers).state;
  assert.equal(stateOf(), 'unknown');
  assert.equal(stateOf(200), 'right');
  assert.equal(stateOf(HOUR_MS), 'unsure', 'one of two, and nobody knows which');
  assert.equal(stateOf(HOUR_MS, HOUR_MS + 5), 'off');
  assert.equal(stateOf(9 * HOUR_MS, -20), 'right', 'one lies');
  assert.equal(stateOf(9 * HOUR_MS, HOUR_MS), 'unsure');
  assert.equal(stateOf(9 * HOUR_MS, HOUR_MS, HOUR_MS, HOUR_MS), 'off', 'one lies, and this one is wrong');
  assert.equal(decideClock([9 * HOUR_MS, HOUR_MS, HOUR_MS, HOUR_MS]).offsetMs, HOUR_MS);
  assert.equal(decideClock([50_000, 50_000], true).state, 'off', 'a clock at the limit does not flap');
  assert.equal(adviseOnClock(decideClock([0, 0])), undefined);
  assert.equal(offsetOf(1_000, 1_200, 5_100), 4_000);
  assert.equal(offsetOf(0, ROUND_TRIP_MAX_MS + 1, 5_000), undefined);
});

test('F3: a clock that was set right is believed at once, and the log has one line for each change', () => {
  let [trueMs, offMs] = [0, -HOUR_MS];
  const lines: string[] = [];
  const logged = Object.assign(Object.create(log), {
    warn: (_: object, text: string) => lines.push(`warn ${text}`),
    info: (_: object, text: string) => lines.push(`info ${text}`),
  });
  const clock = new NetworkClock({
    machineNow: () => Date.UTC(2026, 0) + trueMs + offMs,
    uptime: () => trueMs,
    log: logged,
  });
  const moved: number[] = [];
  clock.onMoved = (movedMs) => moved.push(movedMs);
  const session = () => {
    for (const peer of ['a', 'b']) clock.note(peer, -offMs);
  };
  for (let n = 0; n < 5; n++, trueMs += 120_000) session();
  assert.equal(clock.now(), Date.UTC(2026, 0) + trueMs);
  offMs = 0;
  assert.equal(clock.now(), Date.UTC(2026, 0) + trueMs, 'nothing is added to a clock that was set');
  assert.deepEqual(moved, [HOUR_MS, 0]);
  for (let n = 0; n < 5; n++, trueMs += 120_000) session();
  assert.deepEqual(
    lines.map((line) => line.slice(0, 40)),
    // With one peer nobody knows yet; with two the majority is clear.
    [
      "warn this server's clock is 3600 s behin",
      "warn this server's clock is 3600 s behin",
      "warn this server's clock went ahead by 3",
      "info most clocks agree with this server'",
    ],
  );
});

test('F3: where a clock was set, times that are told are moved by whole milliseconds, in the first answer after it', async () => {
  await using right = await createTestCore();
  let aheadMs = 0;
  await using core = await createTestCore({
    peers: [(await linkOver(right)).link],
    now: () => Date.now() + aheadMs,
    // As the uptime of a machine: with fractions.
    uptime: () => performance.now() + Math.random(),
  });
  assert.ok(await round(core));
  aheadMs = 2 * HOUR_MS;
  const { state, peers } = await statusOf(core);
  for (const atMs of [peers[0].synced_ms, peers[0].forgotten_ms]) {
    assert.ok(Number.isSafeInteger(atMs), `${atMs}`);
    assert.ok(Math.abs(atMs - (Date.now() + aheadMs)) < 60_000, `${atMs}`);
  }
  assert.deepEqual([state, peers[0].state], ['synced', 'synced']);
});

test('F3: a clock that is set says so in the log of a node that has nobody to compare it with', () => {
  let [uptimeMs, offMs] = [0, 0];
  const lines: { readonly msg: string; readonly jump_ms: number; readonly level: number }[] = [];
  const clock = new NetworkClock({
    machineNow: () => Date.UTC(2026, 0) + uptimeMs + offMs,
    uptime: () => uptimeMs,
    log: createLogger('clock', 'info', { write: (line: string) => void lines.push(JSON.parse(line)) }),
  });
  for (const jumpMs of [HOUR_MS, 0, -24 * HOUR_MS, 30_000]) {
    offMs += jumpMs;
    for (let n = 0; n < 3; n++, uptimeMs += 1_000) clock.now();
  }
  assert.deepEqual(
    lines.map(({ level, jump_ms }) => [level, jump_ms]),
    [
      [40, HOUR_MS],
      [40, -24 * HOUR_MS],
    ],
  );
  assert.match(lines[0]!.msg, /went ahead by 3600 s: it was set, or the server was suspended/);
  assert.match(lines[1]!.msg, /went back by 86400 s: it was set;/);
});

test('a node that nobody tells the time says that its clock is behind what it has, and so do its refusals', async () => {
  let nowMs = Date.now();
  await using core = await createTestCore({ now: () => nowMs, log });
  assert.equal((await core.send(alice, note(1))).status, 200);
  const { clock: well } = (await healthOf(core)).checks;
  assert.deepEqual([well.status, well.reason], ['ok', undefined]);
  nowMs -= 24 * HOUR_MS;
  const { body } = signMessage(note(2), alice);
  const refused = await core.post('/messages', body);
  assert.deepEqual([refused.status, refused.body.code], [400, 'TIMESTAMP_IN_FUTURE']);
  assert.match(refused.body.error, /; this server's clock is 86\d{3} s behind the newest message/);
  const { status, checks } = await healthOf(core);
  assert.deepEqual([status, checks.clock.status], ['degraded', 'degraded']);
  assert.match(checks.clock.reason, /the node refuses every new message/);
  nowMs += 24 * HOUR_MS;
  assert.equal((await core.post('/messages', body)).status, 200);
  assert.equal((await healthOf(core)).checks.clock.status, 'ok');
});

test('what is dated ahead says nothing of a clock with which others agree', () => {
  const now = 1_700_000_000_000;
  const newest = (aheadSeconds: number) => now / 1000 + aheadSeconds;
  assert.equal(adviseOnNewest({ state: 'unknown' }, now, undefined), undefined);
  assert.equal(adviseOnNewest({ state: 'unknown' }, now, newest(LIMITS.futureSeconds + 60)), undefined);
  assert.match(adviseOnNewest({ state: 'unknown' }, now, newest(LIMITS.futureSeconds + 61))!, /661 s behind/);
  for (const state of ['right', 'off', 'unsure'] as const)
    assert.equal(adviseOnNewest({ state }, now, newest(7_200)), undefined);
});
