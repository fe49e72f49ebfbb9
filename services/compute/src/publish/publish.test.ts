import assert from 'node:assert/strict';
import { stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { CoreClient } from '@skerry/client';
import { createLogger } from '@skerry/kit';
import { AppError, type InstanceStatusContent, parseIpv6Prefix } from '@skerry/protocol';
import { inDirectory } from '../testing/directory.ts';
import { RealCore } from '../testing/real-core.ts';
import { until } from '../testing/wait.ts';
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
  announced_at_ms: 1,
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
      log: createLogger('test', 'silent'),
      signal: ending.signal,
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
      log: createLogger('test', 'silent'),
      signal: ending.signal,
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
