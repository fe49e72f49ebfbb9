import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { AppError, sha256Hex } from '@skerry/protocol';
import { Dating } from './dating.ts';
import { Outbox } from './outbox.ts';
import type { Instance, Placement } from './view.ts';

const instanceId = sha256Hex('instance');
const placementOn = (name: string): Placement => ({
  nodeId: sha256Hex(name),
  nodeAddress: `0x${'1'.repeat(40)}`,
  ipv6: 'fd00::1',
  reason: null,
});
const nowhere: Placement = { nodeId: null, nodeAddress: null, ipv6: '', reason: null };
const told = (placement: Placement): Instance => ({
  instanceId,
  needs: { cpu: 1, memoryMib: 1, diskGib: 1 },
  createdAt: 0,
  ...placement,
});

/** An outbox whose other end is in the test's hand. */
function createTrial(answer: (attempt: number) => Promise<void>) {
  const sent: Placement[] = [];
  const waiting: { count: number; resolve: () => void }[] = [];
  const outbox = new Outbox({
    publish: async (_instanceId, placement) => {
      sent.push(placement);
      for (const one of waiting) if (sent.length >= one.count) one.resolve();
      await answer(sent.length);
    },
    log: createLogger('test', 'silent'),
  });
  const untilSent = (count: number) =>
    sent.length >= count
      ? Promise.resolve()
      : new Promise<void>((resolve) => waiting.push({ count, resolve }));
  return { outbox, sent, untilSent };
}

test('a decision is sent at once and held until the view shows it', async () => {
  const { outbox, sent, untilSent } = createTrial(async () => {});
  using _ = outbox;
  outbox.offer(instanceId, placementOn('a'));
  await untilSent(1);
  assert.deepEqual([sent, outbox.get(instanceId), outbox.size], [[placementOn('a')], placementOn('a'), 1]);
  outbox.settle(told(nowhere), nowhere);
  assert.equal(outbox.size, 1);
  outbox.settle(told(placementOn('a')), nowhere);
  assert.deepEqual([outbox.size, outbox.get(instanceId)], [0, undefined]);
});

test('a failure is tried again until it works', async () => {
  const { outbox, untilSent } = createTrial(async (attempt) => {
    if (attempt < 3) throw new AppError('UPSTREAM_UNAVAILABLE', 'the core node does not answer');
  });
  using _ = outbox;
  outbox.offer(instanceId, placementOn('a'));
  await untilSent(2);
  assert.match(outbox.trouble.failure!, /does not answer/);
  await untilSent(3);
  await new Promise(setImmediate);
  assert.deepEqual(outbox.trouble, { unconfirmed: 0, failure: null });
});

test('a newer decision replaces an older one that could not be sent', async () => {
  const { outbox, sent, untilSent } = createTrial(async (attempt) => {
    if (attempt === 1) throw new AppError('NOT_PERMITTED', 'no');
  });
  using _ = outbox;
  outbox.offer(instanceId, placementOn('a'));
  await untilSent(1);
  outbox.offer(instanceId, placementOn('b'));
  await untilSent(2);
  assert.deepEqual(sent, [placementOn('a'), placementOn('b')]);
  assert.deepEqual([outbox.size, outbox.get(instanceId)], [1, placementOn('b')]);
});

test('another scheduler’s placement and the end of an instance let go of a decision', () => {
  const { outbox } = createTrial(() => new Promise(() => {}));
  using _ = outbox;
  outbox.offer(instanceId, placementOn('a'));
  outbox.settle(told(placementOn('other')), told(nowhere));
  assert.equal(outbox.size, 0);
  outbox.offer(instanceId, placementOn('a'));
  outbox.settle(told(placementOn('old')), told(placementOn('old')));
  assert.equal(outbox.size, 1, 'what was so before is no news');
  outbox.keepOnly(new Map());
  assert.equal(outbox.size, 0);
});

test('many decisions go out a few at a time, and all of them', async () => {
  let running = 0;
  let most = 0;
  let done = 0;
  const { outbox, untilSent } = createTrial(async () => {
    most = Math.max(most, ++running);
    await new Promise(setImmediate);
    running--;
    done++;
  });
  using _ = outbox;
  for (let i = 0; i < 300; i++) outbox.offer(sha256Hex(`${i}`), placementOn('a'));
  await untilSent(300);
  while (done < 300) await new Promise(setImmediate);
  assert.equal(most, 16);
});

test('a decision that waits for the dates of others is not sent once it is let go of', async () => {
  const asked = Promise.withResolvers<void>();
  const latest = Promise.withResolvers<number>();
  const dating = new Dating(
    () => 1_000,
    () => {
      asked.resolve();
      return latest.promise;
    },
  );
  let sent = 0;
  const ended: Promise<void>[] = [];
  const outbox = new Outbox({
    publish: (_instanceId, _placement, signal) => {
      const dated = dating.date(async () => void sent++, signal);
      ended.push(dated);
      return dated;
    },
    log: createLogger('test', 'silent'),
  });
  outbox.offer(instanceId, placementOn('a'));
  await asked.promise;
  outbox.clear();
  latest.resolve(5_000);
  await assert.rejects(ended[0]!, { name: 'AbortError' });
  assert.deepEqual([sent, ended.length], [0, 1]);
});
