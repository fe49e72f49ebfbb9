import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { describe, test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { runImageTool } from '../../host/image-tool.ts';
import { run } from '../../host/run.ts';
import { fillDisk, inDirectory, onDiskOf } from '../../testing/directory.ts';
import { instanceDirectory, newRecord, readRecord, writeRecord } from '../record/record.ts';
import { removeLeftovers } from './leftovers.ts';
import {
  chooseToErase,
  eraseReleased,
  listReleased,
  putAside,
  putDiskAside,
  sweepReleased,
  takeBack,
} from './released.ts';

const log = createLogger('test', 'silent');
const OWNER = `0x${'a'.repeat(40)}`;
const ID = 'a'.repeat(64);
const wanted = {
  isRunning: true,
  owner: OWNER,
  restartId: null,
  cpu: 1,
  memoryMib: 512,
  diskGib: 4,
  image: 'debian:12',
  sshKey: 'k',
  allowedPorts: [22],
};

const DAY_MS = 86_400_000;
const grace = { forgotten: DAY_MS, replaced: DAY_MS, moved: 30 * DAY_MS };

describe('disks that were put aside', () => {
  const YEARS_MS = 20_000 * DAY_MS;

  async function makeInstance(dataDir: string, text: string) {
    const record = { ...newRecord(ID, wanted, 1), base: 'bases/debian-12-x' };
    await writeRecord(dataDir, record);
    await writeFile(join(instanceDirectory(dataDir, ID), 'disk.qcow2'), text);
    return record;
  }

  test('are kept for their grace and then erased; nobody else is touched', () =>
    inDirectory(async (dataDir) => {
      await putAside(dataDir, await makeInstance(dataDir, 'one'), 'forgotten', 1_000);
      await putAside(dataDir, await makeInstance(dataDir, 'two'), 'moved', 2_000);
      await mkdir(join(dataDir, 'released', 'of-an-older-version'));
      const sweep = (elapsedMs: number) => sweepReleased(dataDir, grace, { elapsedMs, nowMs: YEARS_MS }, log);
      for (const elapsedMs of [0, DAY_MS / 2, DAY_MS / 2 - 1]) await sweep(elapsedMs);
      assert.equal((await listReleased(dataDir)).length, 2, 'however far the clock was set');
      await sweep(1);
      assert.deepEqual(
        (await listReleased(dataDir)).map(({ why }) => why),
        ['moved'],
      );
      await sweep(29 * DAY_MS);
      assert.deepEqual(await readdir(join(dataDir, 'released')), ['of-an-older-version']);
    }));

  test('are left alone where their note does not say what this node writes', () =>
    inDirectory(async (dataDir) => {
      const note = { id: ID, why: 'forgotten', owner: OWNER, atMs: 1, bases: [] };
      const notes = [
        null,
        {},
        { ...note, why: 'x' },
        { ...note, atMs: null },
        { ...note, keptMs: 'x' },
        note,
      ];
      for (const [index, one] of notes.entries()) {
        const directory = join(dataDir, 'released', `${index}`);
        await mkdir(directory, { recursive: true });
        await writeFile(join(directory, 'released.json'), JSON.stringify(one));
      }
      await sweepReleased(dataDir, grace, { elapsedMs: YEARS_MS, nowMs: YEARS_MS }, log);
      assert.deepEqual((await readdir(join(dataDir, 'released'))).sort(), ['0', '1', '2', '3', '4']);
    }));

  test('one that cannot be erased keeps none of the others from its time, and is erased as soon as it can be', () =>
    onDiskOf(4, async (dataDir) => {
      const stuck = await putAside(dataDir, await makeInstance(dataDir, 'one'), 'forgotten', 1_000);
      await putAside(dataDir, await makeInstance(dataDir, 'two'), 'forgotten', 2_000);
      const mounted = join(stuck, 'mounted');
      await mkdir(mounted);
      await run('mount', ['-t', 'tmpfs', 'tmpfs', mounted]);
      const times = { elapsedMs: DAY_MS, nowMs: YEARS_MS };
      // Whoever runs the node hears of it at each sweep.
      for (let time = 1; time <= 2; time++)
        await assert.rejects(sweepReleased(dataDir, grace, times, log), { code: 'EBUSY' });
      const [left = '', ...others] = await readdir(join(dataDir, 'released'));
      assert.ok(left.startsWith(basename(stuck)));
      assert.deepEqual(others, []);
      await run('umount', [join(dataDir, 'released', left, 'mounted')]);
      await sweepReleased(dataDir, grace, times, log);
      assert.deepEqual(await readdir(join(dataDir, 'released')), []);
    }));

  test('an instance that comes back finds the disk it had, unless it was forgotten', () =>
    inDirectory(async (dataDir) => {
      await putAside(dataDir, await makeInstance(dataDir, 'forgotten'), 'forgotten', 1);
      assert.equal(await takeBack(dataDir, ID), false);
      await putAside(dataDir, await makeInstance(dataDir, 'moved'), 'moved', 2);
      assert.equal(await takeBack(dataDir, ID), true);
      const directory = instanceDirectory(dataDir, ID);
      assert.equal(await readFile(join(directory, 'disk.qcow2'), 'utf8'), 'moved');
      assert.equal((await readRecord(dataDir, ID, log))?.base, 'bases/debian-12-x');
    }));

  test('of the disks that its owner had replaced, an instance keeps three', () =>
    inDirectory(async (dataDir) => {
      const record = await makeInstance(dataDir, 'disk');
      for (let atMs = 1; atMs <= 5; atMs++) await putDiskAside(dataDir, record, atMs);
      await putAside(dataDir, record, 'forgotten', 6);
      const times = (await listReleased(dataDir)).map(({ atMs }) => atMs);
      assert.deepEqual(times, [3, 4, 5, 6]);
    }));

  test('what is put aside after the clock was set back comes after what was there', () =>
    inDirectory(async (dataDir) => {
      const record = await makeInstance(dataDir, 'disk');
      for (const nowMs of [YEARS_MS, 1, 1, 1]) await putDiskAside(dataDir, record, nowMs);
      const times = (await listReleased(dataDir)).map(({ atMs }) => atMs - YEARS_MS);
      assert.deepEqual(times, [1, 2, 3]);
    }));

  test('a disk that is replaced is kept under a second name; only its owner erases it early', () =>
    inDirectory(async (dataDir) => {
      const record = await makeInstance(dataDir, 'old');
      await putDiskAside(dataDir, record, 5);
      await rm(join(instanceDirectory(dataDir, ID), 'disk.qcow2'));
      const [kept] = await listReleased(dataDir);
      assert.equal(await readFile(join(kept!.directory, 'disk.qcow2'), 'utf8'), 'old');
      assert.equal(await eraseReleased(dataDir, ID, `0x${'b'.repeat(40)}`), 0);
      assert.equal(await eraseReleased(dataDir, ID, OWNER), 1);
      assert.deepEqual(await listReleased(dataDir), []);
    }));

  test('one for which there is no room leaves nothing: a directory without a note would be left alone for ever', () =>
    onDiskOf(1, async (dataDir) => {
      const record = await makeInstance(dataDir, 'disk');
      await fillDisk(dataDir);
      await assert.rejects(putDiskAside(dataDir, record, 1), { code: 'ENOSPC' });
      assert.deepEqual(await readdir(join(dataDir, 'released')), []);
    }));

  test('what a killed process was putting aside or erasing is none, and goes at the next start', () =>
    inDirectory(async (dataDir) => {
      const record = await makeInstance(dataDir, 'disk');
      for (const atMs of [1, 2]) await putDiskAside(dataDir, record, atMs);
      const [erased, kept] = (await listReleased(dataDir)).map(({ directory }) => directory);
      await rename(erased!, `${erased}.tmp`);
      assert.deepEqual(
        (await listReleased(dataDir)).map(({ directory }) => directory),
        [kept],
      );
      assert.deepEqual(await removeLeftovers(dataDir), { removed: [`${erased}.tmp`], faults: {} });
      assert.deepEqual(
        (await listReleased(dataDir)).map(({ directory }) => directory),
        [kept],
      );
    }));
});

describe('images that disks build on', () => {
  /** What is left of them two days after they were made. */
  async function sweepBases(dataDir: string): Promise<string[]> {
    await sweepReleased(dataDir, grace, { elapsedMs: 0, nowMs: Date.now() + 2 * DAY_MS }, log);
    return (await readdir(join(dataDir, 'bases'))).sort();
  }

  async function makeDisk(dataDir: string, digit: string) {
    const base = join('bases', digit);
    await mkdir(join(dataDir, base), { recursive: true });
    const record = { ...newRecord(digit.repeat(64), wanted, 1), base };
    await writeRecord(dataDir, record);
    await writeFile(join(instanceDirectory(dataDir, record.id), 'disk.qcow2'), 'disk');
    return record;
  }

  test('stay for every disk of an instance and every one that was put aside, whatever a process knows of them', () =>
    inDirectory(async (dataDir) => {
      await makeDisk(dataDir, 'a');
      const moved = await makeDisk(dataDir, 'b');
      await putAside(dataDir, moved, 'moved', 1);
      await mkdir(join(dataDir, 'bases', 'c'));
      assert.deepEqual(await sweepBases(dataDir), ['a', 'b']);
      await takeBack(dataDir, moved.id);
      assert.deepEqual(await sweepBases(dataDir), ['a', 'b']);
    }));

  test('stay where a disk has no record that can be read, and where none notes what it builds on', () =>
    inDirectory(async (dataDir) => {
      const { id } = await makeDisk(dataDir, 'a');
      await mkdir(join(dataDir, 'bases', 'b'));
      const damages = [
        () => writeFile(join(instanceDirectory(dataDir, id), 'vm.json'), '{"version":1'),
        () => rm(join(instanceDirectory(dataDir, id), 'vm.json')),
        () => writeRecord(dataDir, newRecord(id, wanted, 1)),
      ];
      for (const damage of damages) {
        await damage();
        assert.deepEqual(await sweepBases(dataDir), ['a', 'b']);
      }
      // Without a disk, nothing builds on anything: what could not be noted leaves an empty directory.
      await rm(join(instanceDirectory(dataDir, id), 'disk.qcow2'));
      assert.deepEqual(await sweepBases(dataDir), []);
    }));

  test('a disk that nobody noted keeps the one that it builds on, and none of those that strangers bring', () =>
    inDirectory(async (dataDir) => {
      const { id, base } = await makeDisk(dataDir, 'a');
      await mkdir(join(dataDir, 'bases', 'b'));
      const [backing, disk] = [
        join(dataDir, base, 'disk.qcow2'),
        join(instanceDirectory(dataDir, id), 'disk.qcow2'),
      ];
      const create = ['qemu-img', 'create', '-q', '-f', 'qcow2'];
      await runImageTool([...create, backing, '1M'], { writes: [backing] });
      const files = { reads: [backing], writes: [disk] };
      await runImageTool([...create, '-F', 'qcow2', '-b', backing, disk], files);
      // As where the kernel cannot be had that is to boot it.
      const unnoted = newRecord(id, wanted, 1);
      await writeRecord(dataDir, unnoted);
      assert.deepEqual(await sweepBases(dataDir), ['a']);
      await putAside(dataDir, unnoted, 'moved', 1);
      await mkdir(join(dataDir, 'bases', 'b'));
      assert.deepEqual(await sweepBases(dataDir), ['a'], 'also when it is put aside');
    }));
});

test('where there is no room, whoever has most set aside loses the oldest of it first', () => {
  const disk = (name: string, owner: string, takenBytes: number) => ({ name, owner, takenBytes });
  const released = [disk('a1', 'a', 4), disk('b1', 'b', 3), disk('b2', 'b', 3), disk('c1', 'c', 1)];
  const chosen = (missing: number) => chooseToErase(released, missing).map(({ name }) => name);
  assert.deepEqual(chosen(0), []);
  assert.deepEqual(chosen(3), ['b1']);
  assert.deepEqual(chosen(4), ['b1', 'a1']);
  assert.deepEqual(chosen(100), ['b1', 'a1', 'b2', 'c1']);
});
