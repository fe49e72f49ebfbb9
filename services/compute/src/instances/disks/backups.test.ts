import assert from 'node:assert/strict';
import { test } from 'node:test';
import { until } from '@skerry/kit/testing/until';
import { fillDisk, inDirectory, onDiskOf } from '../../testing/directory.ts';
import { Backups } from './backups.ts';

const ID = 'a'.repeat(64);

const open = (dataDir: string, now = Date.now) =>
  Backups.open({ dataDir, signal: new AbortController().signal, now });
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
