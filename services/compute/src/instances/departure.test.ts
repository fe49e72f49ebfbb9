import assert from 'node:assert/strict';
import { readdir, readFile, readlink, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { damageSector, fillDisk, forbid, inDirectory, onDiskOf } from '../testing/directory.ts';
import { SAME_ADDRESS } from './admission.ts';
import { listReleased } from './disks/released.ts';
import { instanceDirectory, newRecord, writeRecord } from './record/record.ts';
import {
  damageRecord,
  ENDED,
  NEED,
  openInstances,
  RUNNING,
  startQemu,
  viewOf,
  WANTED,
} from './testing/unrecorded.ts';

const OTHER_NODE = 'e'.repeat(64);
const DAMAGED = '{"version":1';

const volumeOf = (dataDir: string, id: string) => join(instanceDirectory(dataDir, id), 'volume-0.raw');

/** The instances of a node that has just started. */
async function resumed(dataDir: string) {
  const node = openInstances(dataDir);
  await node.instances.resume(0);
  return node;
}

test('an instance whose record is damaged leaves when another node has it: its data are put aside, with what is left of its record', () =>
  inDirectory(async (dataDir) => {
    await damageRecord(dataDir, RUNNING);
    await writeFile(volumeOf(dataDir, RUNNING), 'written');
    await using qemu = await startQemu(dataDir, RUNNING, '-smp', 'cpus=1', '-m', 'size=512M');
    await using node = await resumed(dataDir);
    const { instances } = node;
    assert.deepEqual(instances.ids(), [RUNNING]);
    assert.equal(typeof (await instances.reserve('0x1', NEED)), 'object');
    const view = { ...viewOf('running'), node_id: OTHER_NODE };
    await instances.apply(view);
    await until('it has left', () => !instances.has(RUNNING));
    assert.equal(await qemu.lives(), false);
    const [aside] = await listReleased(dataDir);
    assert.deepEqual([aside?.why, aside?.owner], ['moved', view.owner]);
    assert.equal(await readFile(join(aside!.directory, 'volume-0.raw'), 'utf8'), 'written');
    assert.equal(await readFile(join(aside!.directory, 'vm.json.unreadable'), 'utf8'), DAMAGED);
    assert.equal(typeof (await instances.reserve('0x1', NEED)), 'number', 'what it had is free');
    await instances.apply(viewOf('stopped'));
    assert.equal(await readFile(volumeOf(dataDir, RUNNING), 'utf8'), 'written', 'it comes back to it');
  }));

test('it leaves when its owner forgot it, and stays where no node has it', () =>
  inDirectory(async (dataDir) => {
    await damageRecord(dataDir, ENDED);
    await damageSector(join(instanceDirectory(dataDir, ENDED), 'vm.json'));
    await writeFile(volumeOf(dataDir, ENDED), 'written');
    await using node = await resumed(dataDir);
    const { instances } = node;
    await instances.apply({ ...viewOf('running', ENDED), node_id: null });
    assert.deepEqual(await listReleased(dataDir), []);
    assert.ok(instances.has(ENDED));
    await instances.forget(ENDED);
    await until('it has left', () => !instances.has(ENDED));
    const [aside] = await listReleased(dataDir);
    assert.equal(aside?.why, 'forgotten');
    assert.equal(await readFile(join(aside!.directory, 'volume-0.raw'), 'utf8'), 'written');
  }));

test('where its leaving cannot be noted it stays as it is, and leaves when that is heard again', () =>
  onDiskOf(4, async (dataDir) => {
    await damageRecord(dataDir, ENDED);
    await writeFile(volumeOf(dataDir, ENDED), 'written');
    await using node = await resumed(dataDir);
    const { instances } = node;
    await fillDisk(dataDir);
    const moved = { ...viewOf('running', ENDED), node_id: OTHER_NODE };
    await instances.apply(moved);
    assert.ok(instances.has(ENDED));
    assert.equal(await readFile(volumeOf(dataDir, ENDED), 'utf8'), 'written');
    await rm(join(dataDir, 'filler'));
    await instances.apply(moved);
    await until('it has left', () => !instances.has(ENDED));
    assert.equal((await listReleased(dataDir)).length, 1);
  }));

test('a directory with nothing in it is not put aside in the place of what an instance left before', () =>
  inDirectory(async (dataDir) => {
    await damageRecord(dataDir, ENDED);
    await using node = await resumed(dataDir);
    const { instances } = node;
    await instances.apply({ ...viewOf('running', ENDED), node_id: OTHER_NODE });
    assert.deepEqual(await listReleased(dataDir), []);
    assert.deepEqual(await readdir(instanceDirectory(dataDir, ENDED)), ['vm.json']);
  }));

/** What an instance has whose record can be read again after the node started. */
async function mendRecord(dataDir: string, id: string): Promise<void> {
  const ipv4 = { link: 5, hostPorts: {} };
  await writeRecord(dataDir, { ...newRecord(id, WANTED, 1), base: 'bases/x', ipv4 });
}

test('an instance whose record can be read again has the link that its guest was set up with', () =>
  inDirectory(async (dataDir) => {
    await damageRecord(dataDir, ENDED);
    await using node = await resumed(dataDir);
    const { instances } = node;
    await mendRecord(dataDir, ENDED);
    await instances.apply(viewOf('stopped', ENDED));
    assert.equal(instances.find(ENDED)?.record.ipv4?.link, 5);
  }));

test('it has that also where it leaves, and comes back', () =>
  inDirectory(async (dataDir) => {
    await damageRecord(dataDir, ENDED);
    await using node = await resumed(dataDir);
    const { instances } = node;
    await mendRecord(dataDir, ENDED);
    await instances.apply({ ...viewOf('running', ENDED), node_id: OTHER_NODE });
    await until('it has left', () => !instances.has(ENDED));
    await instances.apply(viewOf('stopped', ENDED));
    assert.equal(instances.find(ENDED)?.record.ipv4?.link, 5);
  }));

test('an instance that would have the tap of one whose record is damaged is refused: that one may run', () =>
  inDirectory(async (dataDir) => {
    await damageRecord(dataDir, ENDED);
    await using node = await resumed(dataDir);
    const { instances } = node;
    const other = `${ENDED.slice(1)}d`;
    await instances.apply(viewOf('stopped', other));
    assert.equal(instances.absenceOf(other)?.message, SAME_ADDRESS.message);
    await instances.apply(viewOf('stopped', ENDED));
    assert.equal(instances.absenceOf(ENDED)?.message, undefined);
  }));

test('an instance whose record the node may not read neither arrives nor leaves with another one, until it may', () =>
  inDirectory(async (dataDir) => {
    await mendRecord(dataDir, ENDED);
    const path = join(instanceDirectory(dataDir, ENDED), 'vm.json');
    await forbid(path);
    await writeFile(volumeOf(dataDir, ENDED), 'written');
    const said: string[] = [];
    const log = createLogger('test', 'error', { write: (line) => void said.push(line) });
    await using node = openInstances(dataDir, undefined, log);
    const { instances } = node;
    await instances.resume(0);
    for (let count = 0; count < 3; count++) await instances.apply(viewOf('stopped', ENDED));
    assert.match(
      instances.absenceOf(ENDED)?.message ?? '',
      /^this node may not read its record of the instance$/,
    );
    assert.equal(said.length, 2, `said when it started, and once that it cannot be taken: ${said}`);
    await instances.apply({ ...viewOf('running', ENDED), node_id: OTHER_NODE });
    assert.deepEqual(await readdir(instanceDirectory(dataDir, ENDED)), ['vm.json', 'volume-0.raw']);
    assert.match(await readlink(path), /flush$/, 'it is where it was');
    await rm(path);
    await mendRecord(dataDir, ENDED);
    await instances.apply(viewOf('stopped', ENDED));
    assert.equal(instances.find(ENDED)?.record.ipv4?.link, 5);
  }));
