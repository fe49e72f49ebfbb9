import assert from 'node:assert/strict';
import { mkdir, open, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import type { InstanceView } from '@skerry/protocol';
import { promiseRoom } from '../host/room.ts';
import { run } from '../host/run.ts';
import { networkNames } from '../network/names.ts';
import { inDirectory } from '../testing/directory.ts';
import type { InstanceDeps } from './deps.ts';
import { Instances } from './instances.ts';
import { instanceDirectory, newRecord, writeRecord } from './record/record.ts';
import { wantedOf } from './wanted.ts';

const GIB = 1024 ** 3;
/** Of a qcow2 header. */
const SNAPSHOTS_OFFSET = 60;
const NODE = 'f'.repeat(64);
const OWNER = `0x${'1'.repeat(40)}`;
const CAPACITY = { cpu: 8, memoryMib: 8_192, diskGib: 4 };

const viewOf = (digit: string, disk: number) =>
  ({
    ...{ instance_id: digit.repeat(64), node_id: NODE, owner: OWNER, desired: 'stopped', restart_id: null },
    ...{ cpu: 1, memory: 512, disk, image: 'debian:12', ssh_key: '', phase: 'scheduled' },
    firewall: { allowedPorts: [22] },
  }) as InstanceView;

const [OWN, OTHER] = [viewOf('a', 1), viewOf('b', 3)];

/** A node that has an instance with a disk, and may be sent another one that needs all of the rest. */
async function openInstances(dataDir: string) {
  const ending = new AbortController();
  const record = {
    ...newRecord(OWN.instance_id, wantedOf(OWN), 1),
    base: 'bases/x',
    ipv4: { link: 0, hostPorts: {} },
  };
  await writeRecord(dataDir, record);
  const directory = instanceDirectory(dataDir, OWN.instance_id);
  const disk = join(directory, 'disk.qcow2');
  await writeFile(disk, '');
  const deps = {
    ...{ dataDir, log: createLogger('test', 'silent'), now: Date.now, signal: ending.signal },
    network: { start: async () => {}, add: async () => {}, remove: async () => {} },
    core: { getInstance: async () => OTHER },
    checkLag: async () => {},
    addresses: { restore: () => {}, keep: () => {}, claim: async () => record.ipv4, leave: () => {} },
    ipv4Pool: '172.16.0.0/20',
  };
  const instances = new Instances({
    ...{ nodeId: NODE, ipv6Prefix: 'fd00:1:2:3::/64', names: networkNames(NODE), capacity: CAPACITY },
    ...{ besideBytes: 0, obstacle: null, deps: deps as unknown as InstanceDeps, tell: () => {} },
  });
  await instances.resume(0);
  return {
    ...{ instances, directory, disk },
    async [Symbol.asyncDispose]() {
      ending.abort();
      await instances.settled();
    },
  };
}

type Node = Awaited<ReturnType<typeof openInstances>>;

/** The other one is refused, and schedulers hear why, until something is done. */
async function checkRefused({ instances }: Node, undo: () => Promise<unknown>): Promise<void> {
  await instances.apply(OTHER);
  assert.match(
    instances.absenceOf(OTHER.instance_id)?.message ?? '',
    /has 2 GiB of disk left of the 3 needed/,
  );
  const need = { cpu: 1, memoryMib: 512, diskGib: OTHER.disk };
  const answer = await instances.reserve(OWNER, need);
  assert.equal(typeof answer === 'object' && answer.code, 'NO_CAPACITY');
  assert.equal((await instances.lookAtOffer()).diskGib, 3);
  await undo();
  assert.equal((await instances.lookAtOffer()).diskGib, 4);
  await until('it is taken', () => instances.find(OTHER.instance_id) !== undefined);
}

const take = (path: string) => run('fallocate', ['-l', `${GIB}`, path]);

test('S5: an instance is not promised the disk that backups have', () =>
  inDirectory(async (dataDir) => {
    await using node = await openInstances(dataDir);
    const backups = join(dataDir, 'backups', OWN.instance_id);
    await mkdir(backups, { recursive: true });
    await take(join(backups, 'one.qcow2'));
    await checkRefused(node, () => rm(backups, { recursive: true }));
  }));

test('S5: an instance is not promised the disk that another one may write again beside its snapshots', () =>
  inDirectory(async (dataDir) => {
    await using node = await openInstances(dataDir);
    await take(node.disk);
    assert.equal((await node.instances.lookAtOffer()).diskGib, 4, 'what it wrote was promised to it');
    await using disk = await open(node.disk, 'r+');
    const note = (snapshots: number) => disk.write(Buffer.from([0, 0, 0, snapshots]), 0, 4, SNAPSHOTS_OFFSET);
    await note(1);
    await checkRefused(node, () => note(0));
  }));

test('S5: an instance is not promised the disk that a copy which is being made will take', () =>
  inDirectory(async (dataDir) => {
    await using node = await openInstances(dataDir);
    const copy = join(node.directory, 'backup.tmp');
    const copying = await promiseRoom(copy, GIB, 'a backup', async () => 0);
    await checkRefused(node, async () => copying[Symbol.dispose]());
  }));

test('an instance is not promised the disk that another one left here, which may come back to it', () =>
  inDirectory(async (dataDir) => {
    await using node = await openInstances(dataDir);
    const { instances } = node;
    await take(node.disk);
    await instances.apply({ ...OWN, node_id: 'e'.repeat(64) });
    await until('it has left', () => instances.find(OWN.instance_id) === undefined);
    assert.equal((await instances.lookAtOffer()).diskGib, 3);
    const large = viewOf('c', 4);
    await instances.apply(large);
    assert.match(
      instances.absenceOf(large.instance_id)?.message ?? '',
      /has 3 GiB of disk left of the 4 needed/,
    );
    await instances.apply(OTHER);
    assert.ok(instances.find(OTHER.instance_id));
    await instances.apply(OWN);
    assert.ok(instances.find(OWN.instance_id), 'its own disk keeps it out of nothing');
    assert.equal((await instances.lookAtOffer()).diskGib, 4);
  }));
