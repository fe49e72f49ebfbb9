import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { readDiskUsage } from '../../host/capacity.ts';
import { promiseRoom } from '../../host/room.ts';
import { run } from '../../host/run.ts';
import { fillDisk, inDirectory, onDiskOf } from '../../testing/directory.ts';
import { instanceDirectory, newRecord, writeRecord } from '../record/record.ts';
import type { IdleInstance } from '../worker/owner-tasks.ts';
import { Backups } from './backups.ts';

const ID = 'a'.repeat(64);
const log = createLogger('test', 'silent');

const open = (dataDir: string, now = Date.now) =>
  Backups.open({ dataDir, signal: new AbortController().signal, now, log });
/** One that is never done. */
const copying = () => new Promise<void>(() => {});

test('however many are asked for at once, an instance has three', () =>
  inDirectory(async (dataDir) => {
    const backups = await open(dataDir);
    const begun = await Promise.allSettled(Array.from({ length: 10 }, () => backups.start(ID, copying)));
    const refused = begun.flatMap((one) => (one.status === 'rejected' ? [one.reason.code] : []));
    assert.deepEqual(refused, Array(7).fill('TOO_MANY_COPIES'));
    assert.equal((await backups.list(ID)).length, 3);
  }));

test('one that failed gives way to the next, the oldest first', () =>
  inDirectory(async (dataDir) => {
    let nowMs = 0;
    const backups = await open(dataDir, () => ++nowMs);
    const states = async () => (await backups.list(ID)).map(({ id, state }) => ({ id, state }));
    const failing = () => Promise.reject(new Error('no room'));
    const begin = async (copy: () => Promise<void>) => (await backups.start(ID, copy)).id;
    const failed = [await begin(failing), await begin(failing), await begin(failing)];
    await until('they have failed', states, (all) => all.every(({ state }) => state === 'failed'));
    const running = await begin(copying);
    assert.deepEqual(
      (await states()).map(({ id }) => id),
      [failed[1], failed[2], running],
    );
    await begin(copying);
    await begin(copying);
    await assert.rejects(begin(copying), { code: 'TOO_MANY_COPIES' });
  }));

test('cut off are those of a process that ended, and none that runs', () =>
  inDirectory(async (dataDir) => {
    const { id } = await (await open(dataDir)).start(ID, copying);
    const backups = await open(dataDir);
    const { id: running } = await backups.start(ID, copying);
    await backups.sweep(0);
    const states = (await backups.list(ID)).map((one) => [one.id, one.state]);
    assert.deepEqual(Object.fromEntries(states), { [id]: 'failed', [running]: 'running' });
  }));

test('a backup that was cut off has failed, also where the disk has no room to note it', () =>
  onDiskOf(1, async (dataDir) => {
    const { id } = await (await open(dataDir)).start(ID, copying);
    await fillDisk(dataDir);
    const backups = await open(dataDir);
    assert.deepEqual(
      (await backups.list(ID)).map((one) => [one.id, one.state]),
      [[id, 'failed']],
    );
    await backups.delete(ID, id);
    assert.deepEqual(await backups.list(ID), []);
  }));

test('a backup lasts for a day in which the node runs, also where the clock was ahead when it was made or is so later', () =>
  inDirectory(async (dataDir) => {
    const dayMs = 24 * 3_600_000;
    let nowMs = 365 * dayMs;
    const { id } = await (await open(dataDir, () => nowMs)).start(ID, copying);
    nowMs = 0;
    const backups = await open(dataDir, () => nowMs);
    await backups.sweep(dayMs - 2);
    const left = async () => (await backups.list(ID)).map((one) => [one.id, one.expiresAtMs]);
    assert.deepEqual(await left(), [[id, dayMs]]);
    nowMs = 365 * dayMs;
    await backups.sweep(1);
    assert.deepEqual(await left(), [[id, dayMs]]);
    nowMs = dayMs + 1;
    await backups.sweep(1);
    assert.deepEqual(await left(), []);
  }));

test('a backup that is deleted while it is made does not come back', () =>
  inDirectory(async (dataDir) => {
    const backups = await open(dataDir);
    const ends = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const;
    const deleted = await backups.start(ID, () => ends[0].promise);
    await backups.delete(ID, deleted.id);
    const kept = await backups.start(ID, () => ends[1].promise);
    for (const end of ends) end.reject(new Error('the machine is gone'));
    const list = () => backups.list(ID);
    await until('both have ended', list, (all) =>
      all.some(({ id, state }) => id === kept.id && state === 'failed'),
    );
    assert.deepEqual(
      (await list()).map(({ id }) => id),
      [kept.id],
    );
  }));

test('a copy that no note tells of goes when the node starts: its process ended while its owner deleted it', () =>
  inDirectory(async (dataDir) => {
    const directory = join(dataDir, 'backups', ID);
    await mkdir(directory, { recursive: true });
    const [kept, gone] = ['0', '1'].map((digit) => digit.repeat(16));
    const done = { id: kept, state: 'done', createdAtMs: 1, expiresAtMs: 2 };
    await writeFile(join(directory, `${kept}.json`), JSON.stringify(done));
    for (const name of [`${kept}.qcow2`, `${gone}.qcow2`, `${gone}.tmp`, `${gone}.json.0123456789ab.draft`])
      await writeFile(join(directory, name), 'x');
    // What an operator keeps there.
    const others = [join(directory, 'notes.txt'), join(dataDir, 'backups', '2026-11-28', `${gone}.qcow2`)];
    await mkdir(dirname(others[1]!));
    for (const path of others) await writeFile(path, 'x');
    await open(dataDir);
    assert.deepEqual((await readdir(directory)).sort(), [`${kept}.json`, `${kept}.qcow2`, 'notes.txt']);
    for (const path of others) assert.equal(await readFile(path, 'utf8'), 'x');
  }));

test('a note that cannot be read is set aside, its backup stays beside it, and the others are as they were', () =>
  inDirectory(async (dataDir) => {
    const directory = join(dataDir, 'backups', ID);
    await mkdir(directory, { recursive: true });
    const [whole, ...damaged] = ['0', '1', '2', '3'].map((digit) => digit.repeat(16));
    const done = { id: whole, state: 'done', createdAtMs: 1, expiresAtMs: 2 };
    const notes = [JSON.stringify(done), '', '{"id":"2222', JSON.stringify({ ...done, state: 'held' })];
    for (const [index, id] of [whole!, ...damaged].entries()) {
      await writeFile(join(directory, `${id}.json`), notes[index]!);
      await writeFile(join(directory, `${id}.qcow2`), 'x');
    }
    // What was not copied to its end is no backup.
    await writeFile(join(directory, `${damaged[0]}.tmp`), 'x');
    const backups = await open(dataDir);
    assert.deepEqual(
      (await backups.list(ID)).map(({ id }) => id),
      [whole],
    );
    const aside = damaged.flatMap((id) => [`${id}.json.unreadable`, `${id}.qcow2`]);
    const left = [`${whole}.json`, `${whole}.qcow2`, ...aside];
    assert.deepEqual((await readdir(directory)).sort(), left);
    await open(dataDir);
    assert.deepEqual((await readdir(directory)).sort(), left, 'what is set aside stays');
  }));

test('a backup whose note is damaged while it is made has a note again when it is done, and none where its owner deletes it', () =>
  inDirectory(async (dataDir) => {
    const backups = await open(dataDir);
    const directory = join(dataDir, 'backups', ID);
    const begin = async () => {
      const end = Promise.withResolvers<void>();
      const { id } = await backups.start(ID, () => end.promise);
      await writeFile(join(directory, `${id}.json`), '');
      assert.deepEqual(await backups.list(ID), []);
      await writeFile(join(directory, `${id}.tmp`), 'x');
      return { id, end };
    };
    const list = () => backups.list(ID);
    const [deleted, kept] = [await begin(), await begin()];
    await backups.delete(ID, deleted.id);
    for (const { end } of [deleted, kept]) end.resolve();
    await until('one is done', list, ([one]) => one?.state === 'done');
    await until('the other is gone', async () => (await readdir(directory)).length === 3);
    assert.deepEqual(
      (await readdir(directory)).sort(),
      [`${kept.id}.json`, `${kept.id}.json.unreadable`, `${kept.id}.qcow2`].sort(),
    );
  }));

/** An instance that is off, with an empty disk. */
async function makeInstance(dataDir: string): Promise<IdleInstance> {
  const base = join('bases', 'x');
  const directory = instanceDirectory(dataDir, ID);
  for (const one of [join(dataDir, base), directory]) await mkdir(one, { recursive: true });
  const [backing, disk] = [join(dataDir, base, 'disk.qcow2'), join(directory, 'disk.qcow2')];
  await run('qemu-img', ['create', '-q', '-f', 'qcow2', backing, '64M']);
  await run('qemu-img', ['create', '-q', '-f', 'qcow2', '-F', 'qcow2', '-b', backing, disk]);
  return { directory, record: { id: ID, base }, vm: undefined } as unknown as IdleInstance;
}

test('a backup takes no room that is promised to something else', () =>
  // The reserve, what a backup leaves, what the instance may still write, and what another one would need.
  onDiskOf(4 * 1_024, async (dataDir) => {
    const instance = await makeInstance(dataDir);
    const backups = await open(dataDir);
    const make = async () => {
      const { id } = await backups.start(ID, (task) => task(instance));
      const find = async () => (await backups.list(ID)).find((one) => one.id === id);
      const made = await until('it has ended', find, (one) => one !== undefined && one.state !== 'running');
      return made?.reason?.code ?? made?.state;
    };
    const { availableBytes } = await readDiskUsage(dataDir);
    const other = await promiseRoom(join(dataDir, 'other'), availableBytes - 2 * 1024 ** 3, 'another copy');
    assert.equal(await make(), 'STORAGE_FULL');
    other[Symbol.dispose]();
    const wanted = {
      ...{ isRunning: true, restartId: null, cpu: 1, memoryMib: 512, diskGib: 1 },
      ...{ image: 'debian:12', sshKey: '', allowedPorts: [] },
    };
    const neighbour = newRecord('b'.repeat(64), wanted, 1);
    await writeRecord(dataDir, neighbour);
    assert.equal(await make(), 'STORAGE_FULL', 'an instance may still write what it was promised');
    await rm(instanceDirectory(dataDir, neighbour.id), { recursive: true });
    assert.equal(await make(), 'done');
  }));
