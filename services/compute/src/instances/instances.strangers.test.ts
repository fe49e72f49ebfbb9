import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { createHttpServer, createLogger, type HttpServer } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { AppError, type InstanceStatusContent, type InstanceView } from '@skerry/protocol';
import { type AllocationSources, addAllocationRoutes } from '../http/allocations.ts';
import { AddressBook } from '../network/address-book.ts';
import { machineIdOf, networkNames } from '../network/names.ts';
import { inDirectory } from '../testing/directory.ts';
import { uuidOf } from '../vm/command-line.ts';
import { isQemuOf } from '../vm/process.ts';
import type { InstanceDeps } from './deps.ts';
import { Instances } from './instances.ts';
import { instanceDirectory, newRecord, readRecord, writeRecord } from './record/record.ts';
import { wantedOf } from './wanted.ts';

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

/**
 * A node on which no image can be had; its workers end with it.
 * @param now asked when an instance is admitted, among other things
 * @param remove takes an instance's part of the kernel's network away
 * @param addresses who has which part of the node's IPv4
 */
function openInstances(
  dataDir: string,
  now: () => number = Date.now,
  remove: () => Promise<void> = async () => {},
  addresses?: AddressBook,
) {
  const told: InstanceStatusContent[] = [];
  const freed: string[] = [];
  /** What a core node says when it is asked; nothing of others. */
  const views = new Map<string, InstanceView>();
  const deps = {
    ...{ dataDir, log, now, signal: ending.signal, nameServers: [], fileLimitBytes: 1 },
    images: {
      async ensure() {
        throw new AppError('INVALID_IMAGE', 'none');
      },
    },
    network: { remove, start: async () => {} },
    core: {
      async getInstance(id: string) {
        const view = views.get(id);
        if (!view) throw new AppError('INSTANCE_NOT_FOUND', 'none');
        return view;
      },
    },
    checkLag: async () => {},
    addresses: addresses ?? {
      claim: async () => ({ link: 0, hostPorts: {} }),
      free: (id: string) => freed.push(id),
      leave: (id: string) => freed.push(id),
    },
    ipv4Pool: '172.16.0.0/20',
  };
  const instances = new Instances({
    ...{ nodeId: NODE, ipv6Prefix: 'fd00:1:2:3::/64', names: networkNames(NODE), capacity: CAPACITY },
    ...{
      besideBytes: 0,
      obstacle: null,
      deps: deps as unknown as InstanceDeps,
      tell: (status) => told.push(status),
    },
  });
  const untilTold = (id: string, phase: string) =>
    until(`it is ${phase}`, () => told.some((one) => one.instance_id === id && one.phase === phase));
  return {
    ...{ instances, untilTold, told, freed, views },
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
      node.views.set(one.instance_id, one);
      await instances.apply(one);
      assert.match(instances.absenceOf(one.instance_id)?.message ?? '', /MiB of memory/);
    }
    onAdmitting = () => {
      if (instances.find(first.instance_id)) return;
      onAdmitting = () => {};
      node.views.delete(third.instance_id);
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
    assert.match(instances.absenceOf(broken.instance_id)?.message ?? '', /directory|exist/i);
  }));

const OTHER = { node_id: 'e'.repeat(64) };

test('one that was refused, and has moved or was forgotten since, is not taken when there is room, though nothing was heard', () =>
  inDirectory(async (dataDir) => {
    await using node = openInstances(dataDir);
    const { instances, untilTold, views } = node;
    const first = viewOf('a');
    const [moved, forgotten, last] = ['b', 'c', 'd'].map((digit) => viewOf(digit, { memory: 1 }));
    await instances.apply(first);
    await untilTold(first.instance_id, 'failed');
    await instances.find(first.instance_id)!.runTask(({ update }) => update({ base: 'bases/x' }));
    for (const one of [moved!, forgotten!, last!]) await instances.apply(one);
    views.set(moved!.instance_id, { ...moved!, ...OTHER }).set(last!.instance_id, last!);
    await instances.forget(first.instance_id);
    await until('the last one is here', () => instances.find(last!.instance_id) !== undefined);
    for (const one of [moved!, forgotten!]) assert.equal(instances.find(one.instance_id), undefined);
  }));

test('an instance that comes back while it is released is here again', () =>
  inDirectory(async (dataDir) => {
    const [removing, removed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    await using node = openInstances(dataDir, Date.now, () => {
      removing.resolve();
      return removed.promise;
    });
    const { instances, untilTold, views } = node;
    const view = viewOf('a');
    const { instance_id: id } = view;
    views.set(id, view);
    await instances.apply(view);
    await untilTold(id, 'failed');
    const before = instances.find(id);
    await instances.apply({ ...view, ...OTHER });
    await removing.promise;
    await instances.apply(view);
    removed.resolve();
    await until('it was released', () => before!.isDone && instances.find(id) !== before);
    await until('it is here again', () => instances.find(id)?.isDone === false);
  }));

test('an instance that comes back after it could not be put aside is recorded, and keeps its addresses', () =>
  inDirectory(async (dataDir) => {
    await using node = openInstances(dataDir);
    const { instances, untilTold, told, freed } = node;
    const view = viewOf('a');
    const { instance_id: id } = view;
    await instances.apply(view);
    await untilTold(id, 'failed');
    await writeFile(join(dataDir, 'released'), 'no directory');
    await instances.apply({ ...view, ...OTHER });
    await until('it failed', () => /retrying/.test(told.at(-1)!.reason?.message ?? ''));
    await instances.apply({ ...view, desired: 'stopped' });
    await untilTold(id, 'stopped');
    assert.equal((await readRecord(dataDir, id, log))?.wanted.isRunning, false);
    assert.deepEqual(freed, []);
  }));

test('an instance that comes back to its disk has the IPv4 that its guest was set up with, whoever came meanwhile', () =>
  inDirectory(async (dataDir) => {
    const view = viewOf('a', { desired: 'stopped' });
    const { instance_id: id } = view;
    const ipv4 = { link: 0, hostPorts: { 22: 24_000 } };
    await writeRecord(dataDir, { ...newRecord(id, wantedOf(view), 1), base: 'bases/x', ipv4 });
    // Another process takes over before the second one comes.
    for (const { instance_id: other } of [viewOf('b'), viewOf('c')]) {
      ending = new AbortController();
      const book = new AddressBook({ table: 'skerry_test', ports: { first: 24_000, last: 24_099 } });
      await using node = openInstances(dataDir, Date.now, undefined, book);
      const { instances } = node;
      await instances.resume(0);
      const leave = async () => {
        await instances.apply({ ...view, ...OTHER });
        await until('it has left', () => instances.find(id) === undefined);
      };
      await leave();
      assert.notEqual((await book.claim(other, { allowedPorts: [] })).link, 0);
      await instances.apply(view);
      assert.equal((await readRecord(dataDir, id, log))?.ipv4?.link, 0);
      await leave();
    }
  }));

/** Takes connections, and tells of each. */
const SILENT = `
const server = require('net').createServer((socket) => {
  console.log('asked');
  socket.on('error', () => {}).on('close', () => console.log('left'));
});
server.listen('qmp.sock', () => console.log('there'));
`;

/** Programs that are taken for the QEMUs of instances, and answer nothing. */
async function startSilent(dataDir: string, ...ids: readonly string[]) {
  const path = join(dataDir, 'qemu-system-silent');
  await copyFile(process.execPath, path);
  await using started = new AsyncDisposableStack();
  const machines: { end(): Promise<void>; lives(): Promise<boolean>; said(): string }[] = [];
  for (const id of ids) {
    const directory = instanceDirectory(dataDir, id);
    const machineId = machineIdOf(id);
    const args = ['-e', SILENT, '--', '-uuid', uuidOf(machineId)];
    const child = spawn(path, args, { cwd: directory, stdio: ['ignore', 'pipe', 'ignore'] });
    const end = async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill('SIGKILL');
      await once(child, 'exit');
    };
    started.defer(end);
    let said = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      said += text;
    });
    machines.push({ end, lives: () => isQemuOf(child.pid!, directory, machineId), said: () => said });
  }
  await until('they are there', () => machines.every(({ said }) => said().includes('there')));
  const held = started.move();
  return { machines, [Symbol.asyncDispose]: () => held.disposeAsync() };
}

test('a QEMU that does not answer is not taken for none: it has ended before its directory is put aside', () =>
  inDirectory(async (dataDir) => {
    const view = viewOf('a');
    const { instance_id: id } = view;
    await writeRecord(dataDir, { ...newRecord(id, wantedOf(view), 1), base: 'bases/x' });
    await using silent = await startSilent(dataDir, id);
    const [qemu] = silent.machines as [(typeof silent.machines)[number]];
    // Nothing listens: it is asked once, and found silent at once.
    await rm(join(instanceDirectory(dataDir, id), 'qmp.sock'));
    const lived: boolean[] = [];
    await using node = openInstances(dataDir, Date.now, async () => {
      lived.push(await qemu.lives());
    });
    const { instances, untilTold, told } = node;
    await instances.resume(0);
    await untilTold(id, 'starting');
    assert.match(told.at(-1)!.reason?.message ?? '', /does not answer/);
    assert.ok(await qemu.lives());
    await instances.apply({ ...view, ...OTHER });
    await until('it is put aside', () => instances.find(id) === undefined);
    assert.deepEqual(lived, [false]);
    assert.deepEqual(await readdir(join(dataDir, 'instances')), []);
  }));

test('QEMUs that do not answer are waited for together when a node resumes', () =>
  inDirectory(async (dataDir) => {
    const views = [viewOf('a', { desired: 'stopped' }), viewOf('b', { desired: 'stopped' })];
    for (const view of views) await writeRecord(dataDir, newRecord(view.instance_id, wantedOf(view), 1));
    await using silent = await startSilent(dataDir, ...views.map(({ instance_id: id }) => id));
    await using node = openInstances(dataDir);
    const resumed = node.instances.resume();
    await until('each of them is asked', () => silent.machines.every(({ said }) => said().includes('asked')));
    assert.deepEqual(
      silent.machines.map(({ said }) => said()),
      Array(2).fill('there\nasked\n'),
    );
    for (const { end } of silent.machines) await end();
    await resumed;
    for (const { instance_id: id } of views) await node.untilTold(id, 'stopped');
  }));

test('what is heard of an instance while the node resumes makes no second machine of it', () =>
  inDirectory(async (dataDir) => {
    const view = viewOf('a');
    const { instance_id: id } = view;
    await writeRecord(dataDir, { ...newRecord(id, wantedOf(view), 1), base: 'bases/x' });
    await using node = openInstances(dataDir);
    const { instances } = node;
    await Promise.all([instances.resume(0), instances.apply(view), instances.look(id, async () => view)]);
    const kept = await readRecord(dataDir, id, log);
    for (const record of [kept, instances.find(id)?.record])
      assert.equal(record?.phaseTimesMs.scheduled, 1, 'since when it is there is not forgotten');
  }));

test('an instance that can never start has no part of the IPv4 after a restart either', () =>
  inDirectory(async (dataDir) => {
    const view = viewOf('a');
    const { instance_id: id } = view;
    const failure = { code: 'INVALID_IMAGE', message: 'none' };
    await writeRecord(dataDir, { ...newRecord(id, wantedOf(view), 1), failure });
    await using node = openInstances(dataDir);
    await node.instances.resume(0);
    await node.untilTold(id, 'failed');
    assert.equal((await readRecord(dataDir, id, log))?.ipv4, undefined);
  }));

test('what a reinstall had noted when it was cut off is removed before another disk is made', () =>
  inDirectory(async (dataDir) => {
    const view = viewOf('a');
    const { instance_id: id } = view;
    await writeRecord(dataDir, { ...newRecord(id, wantedOf(view), 1), discarded: ['disk.qcow2'] });
    await writeFile(join(instanceDirectory(dataDir, id), 'disk.qcow2'), 'old');
    await using node = openInstances(dataDir);
    await node.instances.resume(0);
    await node.untilTold(id, 'failed');
    assert.deepEqual(await readdir(instanceDirectory(dataDir, id)), ['vm.json']);
  }));

test('whatever is told of an instance is dated after what was told before, though the clock was set back', () =>
  inDirectory(async (dataDir) => {
    let nowMs = 2_000_000_000_000;
    await using node = openInstances(dataDir, () => nowMs);
    const { instances, untilTold, told } = node;
    await mkdir(join(dataDir, 'instances'));
    const path = join(dataDir, 'instances', 'a'.repeat(64));
    await writeFile(path, 'no directory');
    const view = viewOf('a', { desired: 'stopped' });
    const { instance_id: id } = view;
    await instances.apply(view);
    await rm(path);
    nowMs -= 300_000;
    await instances.apply(view);
    await untilTold(id, 'stopped');
    // A core node heard something later of it, from before this process began.
    await instances.find(id)!.noteAccepted(told.at(-1)!.observed_at_ms);
    await instances.applyAll([{ ...view, phase: 'failed' }]);
    const dates = told.map(({ observed_at_ms: date }) => date);
    assert.deepEqual(
      told.map(({ phase }) => phase),
      ['failed', 'stopped', 'stopped'],
    );
    assert.ok(
      dates.every((date, index) => index === 0 || date > dates[index - 1]!),
      dates.join(' '),
    );
  }));
