import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { createHttpServer, createLogger, type HttpServer } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { AppError, type InstanceStatusContent, type InstanceView } from '@skerry/protocol';
import { type AllocationSources, addAllocationRoutes } from '../http/allocations.ts';
import { networkNames } from '../network/names.ts';
import { inDirectory } from '../testing/directory.ts';
import type { InstanceDeps } from './deps.ts';
import { Instances } from './instances.ts';

const log = createLogger('test', 'silent');
const NODE = 'f'.repeat(64);
const OWNER = `0x${'1'.repeat(40)}`;
const CAPACITY = { cpu: 8, memoryMib: 1_024, diskGib: 64 };
let ending: AbortController;
let app: HttpServer;

beforeEach(async () => {
  ending = new AbortController();
  app = await createHttpServer({ log });
});
afterEach(async () => {
  ending.abort();
  await app.close();
});

const viewOf = (digit: string, more: Partial<InstanceView> = {}) =>
  ({
    ...{ instance_id: digit.repeat(64), node_id: NODE, owner: OWNER, desired: 'running', restart_id: null },
    ...{ cpu: 1, memory: 1_024, disk: 1, image: 'debian:12', ssh_key: '', phase: 'scheduled' },
    firewall: { allowedPorts: [22] },
    ...more,
  }) as InstanceView;

/** A node on which no image can be had; its workers end with it. @param now asked when an instance is admitted, among other things */
function openInstances(dataDir: string, now: () => number = Date.now) {
  const told: InstanceStatusContent[] = [];
  const deps = {
    ...{ dataDir, log, now, signal: ending.signal, nameServers: [], fileLimitBytes: 1 },
    images: {
      async ensure() {
        throw new AppError('INVALID_IMAGE', 'none');
      },
    },
    network: { remove: async () => {} },
    addresses: { claim: async () => ({ link: 0, hostPorts: {} }), free() {} },
    ipv4Pool: '172.16.0.0/20',
  };
  const instances = new Instances({
    ...{ nodeId: NODE, ipv6Prefix: 'fd00:1:2:3::/64', names: networkNames(NODE), capacity: CAPACITY },
    ...{ obstacle: null, deps: deps as unknown as InstanceDeps, tell: (status) => told.push(status) },
  });
  const untilTold = (id: string, phase: string) =>
    until(`it is ${phase}`, () => told.some((one) => one.instance_id === id && one.phase === phase));
  return {
    ...{ instances, untilTold },
    async [Symbol.asyncDispose]() {
      ending.abort();
      await instances.settled();
    },
  };
}

test('what a core node said before, and anybody had asked for, takes the place of nothing newer', () =>
  inDirectory(async (dataDir) => {
    await using node = openInstances(dataDir);
    const { instances, untilTold } = node;
    const view = viewOf('a');
    const { instance_id: id } = view;
    await instances.apply(view);
    await untilTold(id, 'failed');
    const [asked, answer] = [Promise.withResolvers<void>(), Promise.withResolvers<InstanceView>()];
    const getInstance = () => {
      asked.resolve();
      return answer.promise;
    };
    addAllocationRoutes(app, {
      ...{ core: { getInstance }, instances, nodeId: NODE, domains: undefined, signers: [], now: Date.now },
    } as AllocationSources);
    const notified = app.inject({
      ...{ method: 'POST', url: '/control/allocation/notify', payload: { instance: id } },
    });
    await asked.promise;
    await instances.apply(viewOf('a', { desired: 'stopped' }));
    await untilTold(id, 'stopped');
    answer.resolve(view);
    assert.equal((await notified).statusCode, 200);
    const isRunning = await instances.find(id)!.runTask(async ({ record }) => record.wanted.isRunning);
    assert.equal(isRunning, false);
  }));

test('an instance that was forgotten while others were given the room is not taken', () =>
  inDirectory(async (dataDir) => {
    let onAdmitting = () => {};
    await using node = openInstances(dataDir, () => {
      onAdmitting();
      return Date.now();
    });
    const { instances, untilTold } = node;
    const first = viewOf('a');
    const [second, third] = [viewOf('b', { memory: 1 }), viewOf('c', { memory: 1 })];
    await instances.apply(first);
    await untilTold(first.instance_id, 'failed');
    // What fails for good and has no disk leaves its room to others.
    await instances.find(first.instance_id)!.runTask(({ update }) => update({ base: 'bases/x' }));
    for (const one of [second, third]) {
      await instances.apply(one);
      assert.match(instances.refusalOf(one.instance_id) ?? '', /MiB of memory/);
    }
    onAdmitting = () => {
      if (instances.find(first.instance_id)) return;
      onAdmitting = () => {};
      void instances.forget(third.instance_id);
    };
    await instances.forget(first.instance_id);
    await until('the second one is here', () => instances.find(second.instance_id) !== undefined);
    // Behind whatever was to be tried.
    await instances.apply(second);
    assert.equal(instances.find(third.instance_id), undefined);
  }));

test('an instance that cannot be recorded keeps nobody else from being heard', () =>
  inDirectory(async (dataDir) => {
    await using node = openInstances(dataDir);
    const { instances } = node;
    const [broken, sound] = [viewOf('a'), viewOf('b')];
    await mkdir(join(dataDir, 'instances'));
    await writeFile(join(dataDir, 'instances', broken.instance_id), 'no directory');
    await instances.applyAll([broken, sound]);
    assert.deepEqual(
      [broken, sound].map((view) => instances.find(view.instance_id) !== undefined),
      [false, true],
    );
    assert.match(instances.refusalOf(broken.instance_id) ?? '', /directory|exist/i);
  }));
