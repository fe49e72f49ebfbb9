import assert from 'node:assert/strict';
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { AppError } from '@skerry/protocol';
import type { Report } from '../../images/progress.ts';
import type { ImageStore } from '../../images/store.ts';
import type { AddressBook } from '../../network/address-book.ts';
import { inDirectory } from '../../testing/directory.ts';
import type { InstanceDeps } from '../deps.ts';
import type { Place } from '../place.ts';
import { instanceDirectory, newRecord, readRecord, writeRecord } from '../record/record.ts';
import { StoredRecord } from '../record/stored-record.ts';
import { createStarts } from '../starts.ts';
import { InstanceWorker } from './worker.ts';

const LOG = createLogger('test', 'silent');
const ID = 'a'.repeat(64);
const WANTED = {
  ...{ isRunning: true, owner: '0x1', restartId: null, cpu: 1, memoryMib: 512, diskGib: 1 },
  ...{ image: 'debian:12', sshKey: '', allowedPorts: [22] },
};

/**
 * An instance whose machine is off.
 * @param remove what the kernel's network says when it is taken away
 * @param base what its disk was made of, where it has one
 */
async function openWorker(
  dataDir: string,
  signal: AbortSignal,
  remove: () => Promise<void>,
  { base = null, ...more }: Partial<InstanceDeps> & { readonly base?: string | null } = {},
) {
  await writeRecord(dataDir, { ...newRecord(ID, WANTED, 1), base });
  return openAgain(dataDir, signal, remove, more);
}

/** The instance, as its record has it. */
async function openAgain(
  dataDir: string,
  signal = new AbortController().signal,
  remove = async () => {},
  more: Partial<InstanceDeps> = {},
) {
  const record = await readRecord(dataDir, ID, LOG);
  assert.ok(record);
  const link = { link: 0, hostPorts: [] };
  const deps = {
    ...{ dataDir, signal, network: { remove }, addresses: { claim: async () => link, free() {} } },
    ...{ log: LOG, now: Date.now, onStatus() {}, ipv4Pool: '172.16.0.0/16' },
    ...more,
  };
  return new InstanceWorker(deps as unknown as InstanceDeps, { id: ID, tap: 't' } as Place, record);
}

test('an owner who asks for one thing after the other keeps no instance that is to end', () =>
  inDirectory(async (dataDir) => {
    const worker = await openWorker(dataDir, new AbortController().signal, async () => {});
    let done = 0;
    const ask = (): void => {
      worker
        .runTask(async () => {
          done++;
          if (done < 100) ask();
          if (done === 3) worker.want('forgotten');
        })
        .catch(() => {});
    };
    ask();
    await worker.work();
    assert.equal(done, 3);
    assert.equal((await readdir(join(dataDir, 'released'))).length, 1);
  }));

test('an instance that cannot be taken away is tried again later, and not all the time', () =>
  inDirectory(async (dataDir) => {
    const ending = new AbortController();
    let tries = 0;
    const worker = await openWorker(dataDir, ending.signal, async () => {
      tries++;
      throw new AppError('INVALID_PARAMETERS', 'a firewall rule is malformed');
    });
    worker.want('forgotten');
    const working = worker.work();
    await until('it was tried', () => tries > 0);
    // Each try writes a file; so many are written meanwhile.
    for (let count = 0; count < 50; count++) await writeFile(join(dataDir, 'written'), `${count}`);
    assert.equal(tries, 1);
    assert.ok((await readdir(instanceDirectory(dataDir, ID))).includes('vm.json'));
    ending.abort();
    await working;
    // The next process goes on with it, before it has heard anything.
    const again = await openAgain(dataDir);
    await again.work();
    assert.equal(again.isDone, true);
  }));

const phaseOf = (worker: InstanceWorker) => worker.record.status?.phase;

/** What others keep a machine waiting with: the turns to boot, or an image that is never ready. */
const WAITS = {
  'a turn to boot': async () => {
    const starts = createStarts(1);
    for (const key of ['0x2', '0x3']) await starts.take({ key, isExempt: false });
    return { starts, base: 'bases/x' };
  },
  'an image': async () => ({
    images: { ensure: () => new Promise<never>(() => {}) } as unknown as ImageStore,
  }),
};

for (const [what, block] of Object.entries(WAITS))
  test(`a machine that waits for ${what} does what is asked of it meanwhile, stops and is deleted at once`, () =>
    inDirectory(async (dataDir) => {
      const ending = new AbortController();
      const worker = await openWorker(dataDir, ending.signal, async () => {}, await block());
      const working = worker.work();
      const waits = () => until(`it waits for ${what}`, () => phaseOf(worker) === 'preparing');
      const heard: string[] = [];
      let isEnded = false;
      worker.console.listen(
        ({ text }) => heard.push(text),
        () => {
          isEnded = true;
        },
      );
      try {
        await waits();
        assert.equal(await worker.runTask(async ({ vm }) => vm, 5_000), undefined);
        worker.want({ ...WANTED, isRunning: false });
        await until('it is stopped', () => phaseOf(worker) === 'stopped');
        worker.want(WANTED);
        await waits();
        worker.want('forgotten');
        await until('it is deleted', () => worker.isDone);
        assert.equal(worker.record.failure, null);
        await working;
        assert.ok(heard.includes('the instance is stopped'), `who follows its console is told: ${heard}`);
        assert.ok(isEnded, 'also that it is gone');
      } finally {
        ending.abort();
        await working;
      }
    }));

test('one that can never start takes no part of the IPv4 that all share', () =>
  inDirectory(async (dataDir) => {
    const ending = new AbortController();
    let claimed = 0;
    const claim = async () => ({ link: claimed++, hostPorts: {} });
    const ensure = () => Promise.reject(new AppError('INVALID_IMAGE', 'none'));
    const worker = await openWorker(dataDir, ending.signal, async () => {}, {
      images: { ensure } as unknown as ImageStore,
      addresses: { claim, free() {} } as unknown as AddressBook,
    });
    const working = worker.work();
    await until('it has failed', () => phaseOf(worker) === 'failed');
    assert.equal(claimed, 0);
    ending.abort();
    await working;
  }));

test('what fails again and again is told of as often as its words say something new: each telling is kept for good', () =>
  inDirectory(async (dataDir) => {
    const ending = new AbortController();
    const told: (string | undefined)[] = [];
    let tries = 0;
    const ensure = async (_name: string, report: Report) => {
      report({ percent: 1, message: 'creating it' });
      throw new AppError('OVERLOADED', `${++tries} others wait`);
    };
    const worker = await openWorker(dataDir, ending.signal, async () => {}, {
      images: { ensure } as unknown as ImageStore,
      onStatus: (_id, { reason }) => told.push(reason?.message),
    });
    const working = worker.work();
    await until('it is tried again', () => tries > 1 && told.at(-1)?.endsWith('(retrying in 4 s)'));
    ending.abort();
    await working;
    const words = [
      'building debian:12: 1 %, creating it',
      '1 others wait (retrying in 1 s)',
      '2 others wait (retrying in 4 s)',
    ];
    assert.deepEqual(told, [undefined, ...words]);
    const stored = new StoredRecord(worker.record, {
      ...{ dataDir, now: Date.now, log: LOG },
      onStatus: (_id, { reason }) => told.push(reason?.message),
    });
    for (let count = 3; count < 10; count++)
      await stored.tellRetry({ code: 'OVERLOADED', message: `${count} others wait` }, 15_000);
    assert.deepEqual(told, [undefined, ...words, '3 others wait (retrying in 15 s)']);
  }));
