import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { AppError, type RunnersContent, type SubmitView } from '@skerry/protocol';
import { Dating } from './dating.ts';
import { decideGatherMs, listRunners, RunnersPublisher } from './runners.ts';
import type { Node } from './view.ts';

const node = (digit: string, features: string[]): Node => ({
  nodeId: digit.repeat(64),
  address: `0x${digit.repeat(40)}`,
  url: `http://node-${digit}.example`,
  ipv6Prefix: null,
  capacity: { cpu: 0, memoryMib: 0, diskGib: 0 },
  features,
  version: '0',
  reason: null,
  announcedAtMs: 1,
  itemHash: digit.repeat(64),
});

test('runners are the nodes that run something, in one order', () => {
  const nodes = [
    node('c', ['program:python3', 'qemu', 'program:nodejs']),
    node('a', ['program:wasm']),
    node('b', ['qemu']),
  ];
  const runners = listRunners(nodes);
  assert.deepEqual(
    runners.map(({ node_id, runtimes }) => [node_id[0], runtimes]),
    [
      ['a', ['wasm']],
      ['c', ['nodejs', 'python3']],
    ],
  );
});

test('a change is told until a core node takes it, dated when it does, and what did not change is not told again', async () => {
  const told: RunnersContent[] = [];
  const posts = new EventTarget();
  let isAway = true;
  // Ahead until the core node says so.
  let nowMs = 1_000_000;
  const core = {
    async postMessage({ content }: { content: unknown }): Promise<SubmitView> {
      if (isAway) {
        isAway = false;
        nowMs = 5;
        throw new AppError('TIMESTAMP_IN_FUTURE', 'the timestamp is too far ahead');
      }
      told.push((content as { content: RunnersContent }).content);
      posts.dispatchEvent(new Event('told'));
      return { item_hash: '0'.repeat(64), status: 'success' };
    },
  };
  const { signal } = new AbortController();
  const publisher = new RunnersPublisher({
    core,
    dating: new Dating(
      () => nowMs,
      async () => 0,
    ),
    signal,
    log: createLogger('test', 'silent'),
  });
  const runners = listRunners([node('a', ['program:wasm'])]);
  publisher.offer([]);
  publisher.offer(runners);
  await once(posts as never, 'told');
  publisher.offer(runners);
  publisher.offer([]);
  await once(posts as never, 'told');
  assert.deepEqual(
    told.map((list) => [list.runners.length, list.decided_at_ms]),
    [
      [1, 5],
      [0, 6],
    ],
  );
});

test('who speaks again tells its list again: another scheduler may have told another one meanwhile', async () => {
  const told: number[] = [];
  const posts = new EventTarget();
  const core = {
    async postMessage({ content }: { content: unknown }): Promise<SubmitView> {
      told.push((content as { content: RunnersContent }).content.runners.length);
      posts.dispatchEvent(new Event('told'));
      return { item_hash: '0'.repeat(64), status: 'success' };
    },
  };
  const publisher = new RunnersPublisher({
    core,
    dating: new Dating(
      () => 5,
      async () => 0,
    ),
    signal: new AbortController().signal,
    log: createLogger('test', 'silent'),
  });
  const offer = async (nodes: Node[]) => {
    const isTold = once(posts as never, 'told');
    publisher.offer(listRunners(nodes));
    await isTold;
  };
  await offer([node('a', ['program:wasm'])]);
  publisher.takeOver();
  await offer([node('a', ['program:wasm'])]);
  publisher.takeOver();
  await offer([]);
  assert.deepEqual(told, [1, 1, 0]);
});

/** Publishers that tell one core node, which notes how long their lists are. */
function createTrial() {
  const told: number[] = [];
  const events = new EventTarget();
  const core = {
    async postMessage({ content }: { content: unknown }): Promise<SubmitView> {
      told.push((content as { content: RunnersContent }).content.runners.length);
      events.dispatchEvent(new Event('told'));
      return { item_hash: '0'.repeat(64), status: 'success' };
    },
  };
  const open = (findLatestMs: () => Promise<number> = async () => 0) =>
    new RunnersPublisher({
      core,
      dating: new Dating(() => 5, findLatestMs),
      signal: new AbortController().signal,
      log: createLogger('test', 'silent'),
    });
  const list = (...digits: string[]) => listRunners(digits.map((digit) => node(digit, ['program:wasm'])));
  return { told, untilTold: () => once(events as never, 'told'), open, list };
}

test('a list that is gathered when another scheduler comes to speak is not told', async () => {
  const { told, untilTold, open, list } = createTrial();
  const [deposed, leading] = [open(), open()];
  deposed.offer(list('a'));
  deposed.standDown();
  // It gathers as long, and began later.
  leading.offer(list('a', 'b'));
  await untilTold();
  assert.deepEqual(told, [2]);
});

test('a list that waits for the dates of others when one of them comes to speak is told by who speaks again only', async () => {
  const { told, untilTold, open, list } = createTrial();
  const asked = Promise.withResolvers<void>();
  const latest = Promise.withResolvers<number>();
  const publisher = open(() => {
    asked.resolve();
    return latest.promise;
  });
  publisher.offer(list('a'));
  await asked.promise;
  publisher.standDown();
  latest.resolve(1_000);
  await new Promise(setImmediate);
  assert.deepEqual(told, []);
  publisher.takeOver();
  publisher.offer(list('a', 'b'));
  await untilTold();
  assert.deepEqual(told, [2]);
});

test('a node that comes and goes as often as it likes has few lists published', () => {
  let [gatheredMs, nowMs, published] = [0, 0, 0];
  const firstMs: number[] = [];
  while (nowMs < 3_600_000) {
    gatheredMs = decideGatherMs(gatheredMs, 0);
    nowMs += gatheredMs;
    if (++published <= 4) firstMs.push(gatheredMs);
  }
  assert.deepEqual(firstMs, [200, 400, 800, 1_600]);
  assert.ok(published < 140, `${published} lists in an hour`);
  // After a while without a change the next one is told at once.
  assert.equal(decideGatherMs(gatheredMs, 30_000), 200);
});
