import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { damageSector, forbid, inDirectory } from '../../testing/directory.ts';
import { enterPhase, instanceDirectory, newRecord, readRecord, readRecords, writeRecord } from './record.ts';
import { StoredRecord } from './stored-record.ts';

const wanted = {
  isRunning: true,
  restartId: null,
  cpu: 1,
  memoryMib: 512,
  diskGib: 4,
  image: 'debian:12',
  sshKey: 'k',
  allowedPorts: [22],
};

describe('records', () => {
  test('are read back; a damaged one is left alone and does not hide the others', async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'skerry-records-'));
    try {
      const log = createLogger('test', 'silent');
      assert.deepEqual(await readRecords(dataDir, log), []);
      const record = newRecord('a'.repeat(64), wanted, 5);
      await writeRecord(dataDir, record);
      const damaged = newRecord('b'.repeat(64), wanted, 5);
      await writeRecord(dataDir, damaged);
      for (const text of [
        '{"version":1',
        'null',
        JSON.stringify({ version: 1, id: damaged.id, wanted: {} }),
      ]) {
        await writeFile(join(instanceDirectory(dataDir, damaged.id), 'vm.json'), text);
        assert.deepEqual(await readRecords(dataDir, log), [record]);
      }
    } finally {
      await rm(dataDir, { recursive: true, force: true });
    }
  });

  test('one that the disk cannot read is left alone, said, and does not hide the others', () =>
    inDirectory(async (dataDir) => {
      const said: string[] = [];
      const log = createLogger('test', 'error', { write: (line) => void said.push(line) });
      const record = newRecord('a'.repeat(64), wanted, 5);
      await writeRecord(dataDir, record);
      const unreadable = instanceDirectory(dataDir, 'b'.repeat(64));
      await mkdir(unreadable);
      await damageSector(join(unreadable, 'vm.json'));
      assert.deepEqual(await readRecords(dataDir, log), [record]);
      assert.match(said.join(), /EIO.*b{64}.*left alone/);
    }));

  test('one that the node may not read hides no other, and is told apart from one that is damaged', () =>
    inDirectory(async (dataDir) => {
      const said: string[] = [];
      const log = createLogger('test', 'error', { write: (line) => void said.push(line) });
      const record = newRecord('a'.repeat(64), wanted, 5);
      await writeRecord(dataDir, record);
      const other = instanceDirectory(dataDir, 'b'.repeat(64));
      await mkdir(other);
      await forbid(join(other, 'vm.json'));
      assert.deepEqual(await readRecords(dataDir, log), [record]);
      assert.match(said.join(), /EACCES.*b{64}.*left alone/);
      await assert.rejects(readRecord(dataDir, 'b'.repeat(64), log), /may not read its record/);
    }));

  test('a boot is as old as the clock says; one that was set back since has it begin anew, and once', () =>
    inDirectory(async (dataDir) => {
      let nowMs = 10_000;
      const options = { dataDir, now: () => nowMs, log: createLogger('test', 'silent'), onStatus() {} };
      const record = { ...newRecord('a'.repeat(64), wanted, 1), bootedAtMs: 9_000 };
      const stored = new StoredRecord(record, options);
      assert.equal(await stored.bootAge(), 1_000);
      for (const [now, age] of [
        [500, 0],
        [700, 200],
      ] as const) {
        nowMs = now;
        assert.equal(await stored.bootAge(), age);
      }
      assert.equal((await readRecords(dataDir, options.log))[0]?.bootedAtMs, 500);
    }));

  test('entering a phase forgets the times of later ones', () => {
    const times = { scheduled: 1, preparing: 2, starting: 3, running: 4, stopping: 5, stopped: 6 };
    assert.deepEqual(enterPhase(times, 'starting', 9), { scheduled: 1, preparing: 2, starting: 9 });
    assert.deepEqual(enterPhase({ scheduled: 1 }, 'preparing', 2), { scheduled: 1, preparing: 2 });
  });
});
