import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import fc from 'fast-check';
import { decideAdmission } from './admission.ts';
import { CONSOLE_FILE_BYTES_MAX, ConsoleLog } from './console-log.ts';
import { type Bench, ErrandLine } from './errands.ts';
import { instanceDirectory, newRecord, readRecord, writeRecord } from './record.ts';
import { eraseReleased, listReleased, putAside, putDiskAside, sweepReleased, takeBack } from './released.ts';

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
const isError = (code: string) => (error: unknown) => error instanceof AppError && error.code === code;

async function inDirectory(body: (directory: string) => Promise<void>): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'skerry-keeping-'));
  try {
    await body(directory);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

describe('admission', () => {
  const capacity = { cpu: 2, memoryMib: 4_096, diskGib: 100 };

  test('memory and disk are promised once, cores four times; a refusal says what lacks', () => {
    const small = { cpu: 2, memoryMib: 1_024, diskGib: 20 };
    assert.equal(decideAdmission(capacity, [small, small, small], small), null);
    const refusal = decideAdmission(capacity, [small, small, small, small], small);
    assert.equal(refusal?.code, 'NO_CAPACITY');
    assert.match(
      refusal?.message ?? '',
      /0 virtual cores left of the 2 asked for.*0 MiB of memory left of the 1024/,
    );
    assert.match(
      decideAdmission(capacity, [], { ...small, diskGib: 10_240 })?.message ?? '',
      /100 GiB of disk/,
    );
  });

  test('whatever is admitted, the sum of what was promised never exceeds what there is', () => {
    const need = fc.record({
      cpu: fc.integer({ min: 1, max: 4 }),
      memoryMib: fc.integer({ min: 128, max: 3_000 }),
      diskGib: fc.integer({ min: 1, max: 60 }),
    });
    fc.assert(
      fc.property(fc.array(need, { maxLength: 30 }), (needs) => {
        const taken: typeof needs = [];
        for (const one of needs) if (decideAdmission(capacity, taken, one) === null) taken.push(one);
        const sum = (of: (one: (typeof needs)[number]) => number) =>
          taken.reduce((all, one) => all + of(one), 0);
        assert.ok(
          sum((one) => one.cpu) <= 8 &&
            sum((one) => one.memoryMib) <= 4_096 &&
            sum((one) => one.diskGib) <= 100,
        );
      }),
    );
  });
});

describe('console', () => {
  test('lines are kept whole however their bytes are cut, and told to listeners', () =>
    inDirectory(async (directory) => {
      const console = new ConsoleLog(directory, () => 7);
      const heard: string[] = [];
      const stop = console.listen(({ text }) => heard.push(text));
      const bytes = new TextEncoder().encode('one\r\ntwo ü\nthree');
      for (const byte of bytes) await console.append(Uint8Array.of(byte));
      assert.deepEqual(await console.read(10), [
        { atMs: 7, text: 'one' },
        { atMs: 7, text: 'two ü' },
      ]);
      stop?.();
      await console.finish();
      assert.deepEqual(heard, ['one', 'two ü']);
      assert.deepEqual(
        (await new ConsoleLog(directory, () => 9).read(1)).map(({ text }) => text),
        ['three'],
      );
    }));

  test('a guest that prints without end, even without a line break, fills two files and no more', () =>
    inDirectory(async (directory) => {
      const console = new ConsoleLog(directory, () => 1);
      const chunk = new TextEncoder().encode(`${'x'.repeat(4_000)}\n`.repeat(20));
      for (let count = 0; count < 40; count++)
        await console.append(count % 2 === 0 ? chunk : chunk.subarray(0, 65_000));
      await console.finish();
      const files = await readdir(directory);
      assert.deepEqual(files.sort(), ['console.1.log', 'console.log']);
      for (const name of files)
        assert.ok((await stat(join(directory, name))).size < 2 * CONSOLE_FILE_BYTES_MAX);
    }));
});

describe('errands', () => {
  const bench = {} as Bench;

  test('are done one after the other; a failure is told to who asked', async () => {
    const line = new ErrandLine();
    const first = line.ask(async () => 1, 1_000);
    const second = line.ask(async () => Promise.reject(new AppError('INTERNAL', 'no')), 1_000);
    await line.next(bench);
    await line.next(bench);
    assert.equal(await first, 1);
    await assert.rejects(second, isError('INTERNAL'));
    assert.ok(line.isEmpty);
  });

  test('one that cannot begin in time does not happen; too many are refused; an end is told', async () => {
    const line = new ErrandLine();
    let isDone = false;
    const late = line.ask(async () => {
      isDone = true;
    }, 1);
    await assert.rejects(late, isError('INSTANCE_BUSY'));
    await line.next(bench);
    assert.equal(isDone, false);
    const waiting = Array.from({ length: 8 }, () => line.ask(async () => {}, 60_000));
    await assert.rejects(
      line.ask(async () => {}, 60_000),
      isError('INSTANCE_BUSY'),
    );
    line.close(new AppError('INSTANCE_NOT_FOUND', 'gone'));
    for (const one of waiting) await assert.rejects(one, isError('INSTANCE_NOT_FOUND'));
  });
});

describe('disks that were put aside', () => {
  const DAY_MS = 86_400_000;
  const grace = { forgotten: DAY_MS, replaced: DAY_MS, moved: 30 * DAY_MS };

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
      const sweep = (nowMs: number) => sweepReleased(dataDir, grace, [], nowMs, log);
      await sweep(DAY_MS);
      assert.equal((await listReleased(dataDir)).length, 2);
      await sweep(DAY_MS + 1_001);
      assert.deepEqual(
        (await listReleased(dataDir)).map(({ why }) => why),
        ['moved'],
      );
      await sweep(31 * DAY_MS);
      assert.deepEqual(await readdir(join(dataDir, 'released')), ['of-an-older-version']);
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
});
