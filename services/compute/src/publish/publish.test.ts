import assert from 'node:assert/strict';
import { stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, mock, test } from 'node:test';
import { CoreClient, findAnnouncement } from '@skerry/client';
import { createLogger } from '@skerry/kit';
import { AppError, type InstanceStatusContent, parseIpv6Prefix } from '@skerry/protocol';
import { inDirectory } from '../testing/directory.ts';
import { RealCore } from '../testing/real-core.ts';
import { until } from '../testing/wait.ts';
import { AcceleratorChoice } from '../vm/accel.ts';
import { Announcer } from './announcer.ts';
import { loadIdentity, randomUlaPrefix } from './identity.ts';
import { Publisher } from './publisher.ts';

/** Only what hangs takes as long. */
const SOON_MS = 100_000;

describe('identity', () => {
  test('made once, private, then the same for ever', () =>
    inDirectory(async (directory) => {
      const first = await loadIdentity(directory, undefined);
      const second = await loadIdentity(directory, undefined);
      assert.deepEqual(
        [second.nodeId, second.ipv6Prefix, second.signer.address],
        [first.nodeId, first.ipv6Prefix, first.signer.address],
      );
      assert.equal((await stat(join(directory, 'node.key'))).mode & 0o777, 0o600);
      assert.match(first.ipv6Prefix, /^fd[0-9a-f:]+::\/64$/);
    }));

  test('a given prefix counts, a wrong one is refused, and a damaged key is not shown', () =>
    inDirectory(async (directory) => {
      assert.equal((await loadIdentity(directory, '2001:DB8:1:2::/64')).ipv6Prefix, '2001:db8:1:2::/64');
      const isConfig = (error: unknown) => error instanceof AppError && error.code === 'INVALID_CONFIG';
      await assert.rejects(loadIdentity(directory, '2001:db8::/48'), isConfig);
      await writeFile(join(directory, 'node.key'), 'secret-and-damaged', { mode: 0o600 });
      await assert.rejects(
        loadIdentity(directory, undefined),
        (error) => isConfig(error) && !String((error as Error).message).includes('secret-and'),
      );
    }));

  test('random prefixes are unique local networks of length 64', () => {
    for (let count = 0; count < 100; count++) {
      const prefix = randomUlaPrefix();
      assert.equal(parseIpv6Prefix(prefix), prefix);
    }
  });
});

const ANNOUNCED = {
  ipv6_prefix: '2001:db8::/64',
  capacity: { cpu: 1, memory_mib: 1, disk_gib: 1 },
  features: [],
  version: '0',
  reason: null,
};

test('what a core node that is away does not hear is kept: the latest word about each instance', () =>
  inDirectory(async (directory) => {
    const { signer } = await loadIdentity(directory, undefined);
    await using core = await new RealCore().start();
    const { url } = core;
    await core.stop();
    const ending = new AbortController();
    const accepted: number[] = [];
    const publisher = new Publisher({
      core: new CoreClient({ url, signer }),
      ...{ log: createLogger('test', 'silent'), signal: ending.signal, now: Date.now },
      lastAnnouncedMs: async () => 0,
    });
    const status = (id: string, phase: 'starting' | 'running', at: number): InstanceStatusContent => ({
      instance_id: id.repeat(64),
      phase,
      reason: null,
      observed_at_ms: at,
      restart_id: null,
    });
    const work = publisher.work(async (status) => void accepted.push(status.observed_at_ms));
    publisher.tellNode({ url, ...ANNOUNCED });
    publisher.tellStatus(status('a', 'starting', 1));
    publisher.tellStatus(status('b', 'starting', 2));
    publisher.tellStatus(status('a', 'running', 3));
    assert.equal(publisher.waiting, 3);
    await core.start();
    await until('all is told', SOON_MS, () => publisher.waiting === 0);
    assert.equal((await core.listNodes()).length, 1);
    assert.deepEqual(
      (await core.listStatuses()).map((one) => [one.instance_id[0], one.phase]),
      [
        ['b', 'starting'],
        ['a', 'running'],
      ],
    );
    assert.deepEqual(accepted, [3, 2]);
    ending.abort();
    await work;
  }));

test('what a core node refuses for the clock of this machine alone is kept until that is right', () =>
  inDirectory(async (directory) => {
    const { signer } = await loadIdentity(directory, undefined);
    await using core = await new RealCore().start();
    const client = new CoreClient({ url: core.url, signer });
    const ending = new AbortController();
    const refused = Promise.withResolvers<void>();
    let aheadSeconds = 3_600;
    const publisher = new Publisher({
      core: {
        async postMessage(draft) {
          const timestamp = Math.floor(Date.now() / 1000) + aheadSeconds;
          try {
            return await client.postMessage({ ...draft, timestamp });
          } catch (error) {
            assert.equal((error as AppError).code, 'TIMESTAMP_IN_FUTURE');
            refused.resolve();
            throw error;
          }
        },
      },
      ...{ log: createLogger('test', 'silent'), signal: ending.signal, now: Date.now },
      lastAnnouncedMs: async () => 0,
    });
    publisher.tellNode({ url: core.url, ...ANNOUNCED });
    const work = publisher.work(async () => {});
    await refused.promise;
    aheadSeconds = 0;
    await until('it is told', SOON_MS, () => publisher.waiting === 0);
    assert.equal((await core.listNodes()).length, 1);
    ending.abort();
    await work;
  }));

const YEAR_MS = 366 * 86_400_000;

test('a clock that was ahead outranks nothing that the node says once it is right, in this process and the next', () =>
  inDirectory(async (directory) => {
    const { signer } = await loadIdentity(directory, undefined);
    await using core = await new RealCore().start();
    const client = new CoreClient({ url: core.url, signer });
    const log = createLogger('test', 'silent');
    /** Ends with the body, as a process does. */
    const withNode = async (body: (node: Announcer, publisher: Publisher) => Promise<void>) => {
      const ending = new AbortController();
      const publisher = new Publisher({
        ...{ core: client, log, signal: ending.signal, now: Date.now },
        lastAnnouncedMs: async () => (await findAnnouncement(client, signer.address))?.atMs ?? 0,
      });
      const announcer = new Announcer({
        ...{ publisher, ipv6Prefix: '2001:db8::/64', capacity: { cpu: 1, memoryMib: 1, diskGib: 1 }, log },
        ...{ accelerator: new AcceleratorChoice('tcg', log), obstacle: null, programFeatures: [] },
        ...{ isDraining: false, announceUrl: core.url },
      });
      const work = publisher.work(async () => {});
      await body(announcer, publisher);
      ending.abort();
      await work;
    };
    const isTold = (publisher: Publisher) => until('it is told', SOON_MS, () => publisher.waiting === 0);
    const saidLast = async () => (await core.listNodes())[0]!.content;
    const inTheFuture = (aheadMs: number) =>
      mock.timers.enable({ apis: ['Date'], now: Date.now() + aheadMs });
    const reason = { code: 'PREFIX_NOT_HELD', message: 'none' };
    try {
      await withNode(async (node, publisher) => {
        inTheFuture(YEAR_MS);
        const refused = Promise.withResolvers<void>();
        const { postMessage } = client;
        client.postMessage = (draft) =>
          postMessage.call(client, draft).catch((error) => {
            refused.resolve();
            throw error;
          });
        node.announce();
        await refused.promise;
        mock.timers.reset();
        await isTold(publisher);
        assert.ok((await saidLast()).announced_at_ms <= Date.now());
        node.setPrefixObstacle(reason);
        await isTold(publisher);
        assert.deepEqual((await saidLast()).reason, reason);
        // As far ahead as a core node allows.
        inTheFuture(300_000);
        node.setPrefixObstacle(null);
        await isTold(publisher);
        mock.timers.reset();
      });
      await withNode(async (node, publisher) => {
        node.setPrefixObstacle(reason);
        await isTold(publisher);
        assert.deepEqual((await saidLast()).reason, reason);
      });
    } finally {
      mock.timers.reset();
    }
  }));

test('a status that was observed while the clock was ahead is dated as it is sent', async () => {
  const sent: number[] = [];
  const ending = new AbortController();
  const nowMs = 1_000_000_000_000;
  const publisher = new Publisher({
    core: {
      async postMessage({ content }) {
        sent.push((content as { content: InstanceStatusContent }).content.observed_at_ms);
        return {} as never;
      },
    },
    ...{ log: createLogger('test', 'silent'), signal: ending.signal, now: () => nowMs },
    lastAnnouncedMs: async () => 0,
  });
  const accepted: number[] = [];
  const dates = [nowMs - 5, nowMs + 300_000, nowMs + YEAR_MS, nowMs + YEAR_MS + 1];
  for (const [index, date] of dates.entries())
    publisher.tellStatus({
      ...{ instance_id: `${index}`.repeat(64), phase: 'running', reason: null, restart_id: null },
      observed_at_ms: date,
    });
  const work = publisher.work(async (status) => void accepted.push(status.observed_at_ms));
  await until('all are told', SOON_MS, () => accepted.length === dates.length);
  assert.deepEqual(sent, [nowMs - 5, nowMs + 300_000, nowMs, nowMs + 1]);
  assert.deepEqual(accepted, dates);
  ending.abort();
  await work;
});

/** Tells what `post` takes, by the first character of the instance, until all is told. */
async function tellAll(ids: string, post: (id: string, publisher: Publisher) => void): Promise<void> {
  const ending = new AbortController();
  const publisher = new Publisher({
    core: {
      async postMessage({ content }) {
        const { instance_id: id } = (content as { content: InstanceStatusContent }).content;
        post(id[0]!, publisher);
        return {} as never;
      },
    },
    ...{ log: createLogger('test', 'silent'), signal: ending.signal, now: Date.now },
    lastAnnouncedMs: async () => 0,
  });
  for (const id of ids) publisher.tellStatus(running(id, 1));
  const work = publisher.work(async () => {});
  await until('all are told', SOON_MS, () => publisher.waiting === 0);
  ending.abort();
  await work;
}

const running = (id: string, atMs: number): InstanceStatusContent => ({
  ...{ instance_id: id.repeat(64), phase: 'running', reason: null, restart_id: null },
  observed_at_ms: atMs,
});

test('an instance that changes whenever it is told of does not hold up what is said of others', async () => {
  const told: string[] = [];
  await tellAll('abc', (id, publisher) => {
    told.push(id);
    if (id === 'a' && told.length < 6) publisher.tellStatus(running('a', told.length + 1));
  });
  assert.deepEqual(told.slice(0, 4), ['a', 'b', 'c', 'a']);
});

test('nor does one of which the core node takes no word', async () => {
  const told: string[] = [];
  await tellAll('abc', (id) => {
    if (id === 'a' && told.length < 2) throw new AppError('INTERNAL', 'the core node fails at this one');
    told.push(id);
  });
  assert.deepEqual(told, ['b', 'c', 'a']);
});
