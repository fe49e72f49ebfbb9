import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { rename, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { describe, test } from 'node:test';
import {
  createLogger,
  loadOrCreateKeyFile,
  loadOrCreateText,
  makeDirectory,
  readTextIfAny,
} from '@skerry/kit';
import { pureVrfEngine } from '@skerry/protocol';
import { findRecord, rememberInstance } from '../apps/cli/src/instances/records.ts';
import { importKey, listKeys } from '../apps/cli/src/keys/key-store.ts';
import { listReleased, putAside, takeBack } from '../services/compute/src/instances/disks/released.ts';
import { newRecord, readRecords, writeRecord } from '../services/compute/src/instances/record/record.ts';
import { Replays } from '../services/compute/src/owner/replays.ts';
import { loadVrfKeys } from '../services/core/src/node/vrf/key-file.ts';
import { createDirectoryBlobStore } from '../services/core/src/store/files/directory-store.ts';
import { PurchaseStore } from '../services/credit/src/purchase-store.ts';
import { readState, writeState } from '../services/gateway/src/sync/store.ts';
import { HourStore } from '../services/monitor/src/hour-store.ts';
import { Store } from '../services/status/src/history/store.ts';
import { namedTarget } from '../services/status/src/registry.ts';
import { PowerCut } from './testing/power-cut.ts';

/** What a daemon or a command has acknowledged survives a power cut, wherever it keeps it. */

const log = createLogger('test', 'silent');
const ID = 'ab'.repeat(32);
const NOW = 1_780_000_000_000;
const HOUR = 494_520 * 3_600_000;
const ADDRESS = `0x${'1'.repeat(40)}`;

interface Kept {
  /** Each resolves when the next life must know of it. */
  readonly steps: readonly ((dir: string) => Promise<unknown>)[];
  /** What a life that begins in a directory knows. */
  readonly read: (dir: string) => Promise<unknown>;
}

/** Within a directory of its own two levels below one that is there, as daemons make theirs. */
async function check({ steps, read }: Kept): Promise<void> {
  const root = mkdtempSync(join(tmpdir(), 'skerry-power-cut-'));
  const now = join(root, 'now');
  try {
    mkdirSync(now);
    let before: unknown;
    for (const index of steps.keys()) {
      {
        using cut = await PowerCut.watch();
        // What was acknowledged earlier is on the disk as far as it was synced then; so all steps are taken again.
        rmSync(now, { recursive: true });
        mkdirSync(now);
        for (const one of steps.slice(0, index + 1)) await one(join(now, 'made', 'dir'));
        cut.leave(now, join(root, `left-${index}`));
      }
      const known = await read(join(now, 'made', 'dir'));
      assert.notDeepEqual(known, before, `step ${index} changes something`);
      assert.deepEqual(await read(join(root, `left-${index}`, 'made', 'dir')), known, `after step ${index}`);
      before = known;
    }
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

const wanted = {
  owner: ADDRESS,
  isRunning: true,
  restartId: null,
  cpu: 1,
  memoryMib: 512,
  diskGib: 1,
  image: 'debian:12',
  sshKey: 'ssh-ed25519 AAAA',
  allowedPorts: [],
};

const purchase = (id: string) => ({ id }) as Parameters<PurchaseStore['addPurchases']>[0][number];
const result = (atMs: number) => ({ atMs, isOnline: true, latencyUs: 5, statusCode: 200, issue: null });
const table = (cursor: string) => ({ instances: [], cursor, lastSyncTime: 1 });

const KEPT: Readonly<Record<string, Kept>> = {
  "a daemon's key": {
    steps: [(dir) => loadOrCreateKeyFile(join(dir, 'key'))],
    read: (dir) => readTextIfAny(join(dir, 'key')),
  },
  "a core node's keys for random values": {
    steps: [1, 2].map((epoch) => (dir) => loadVrfKeys(join(dir, 'vrf'), pureVrfEngine, epoch, epoch)),
    read: (dir) => readTextIfAny(join(dir, 'vrf')),
  },
  "a core node's files": {
    steps: ['one', 'two'].map((content) => async (dir) => {
      await makeDirectory(dir);
      const store = await createDirectoryBlobStore(dir);
      await (await store.receive(Readable.from([Buffer.from(content)]), 100)).keep();
    }),
    read: async (dir) => {
      await makeDirectory(dir);
      const store = await createDirectoryBlobStore(dir);
      const blobs = await store.list(undefined, 10);
      return Promise.all(blobs.map(async ({ hash }) => [hash, await text(await store.read(hash))]));
    },
  },
  "the gateway's table": {
    steps: ['1', '2'].map((cursor) => (dir) => writeState(dir, table(cursor))),
    read: (dir) => readState(dir, { allowLocal: false, allowPrivate: false }, log),
  },
  'hours that a monitor measured': {
    steps: [
      async (dir) => {
        const store = await HourStore.create(dir, log);
        await store.append(HOUR, { kind: 'core', record: { node_id: 'a', measured_at: 1 } });
        await store.append(HOUR, { kind: 'core', record: { node_id: 'b', measured_at: 2 } });
      },
      async (dir) => (await HourStore.create(dir, log)).keepAnswered(new Map([['core:a', HOUR]])),
      async (dir) => (await HourStore.create(dir, log)).sign(HOUR, [{ itemHash: 'x', body: '{}' }]),
      async (dir) => (await HourStore.create(dir, log)).finish(HOUR, 'x'),
    ],
    read: async (dir) => {
      const store = await HourStore.create(dir, log);
      const hours = await store.listHours();
      const signed = hours.get(HOUR) === 'signed' ? await store.readSigned(HOUR) : undefined;
      return [hours, await store.readAnswered(), signed];
    },
  },
  'purchases of credit': {
    steps: [
      async (dir) => (await PurchaseStore.open(dir, log)).store.addPurchases([purchase('a'), purchase('b')]),
      async (dir) => (await PurchaseStore.open(dir, log)).store.writeProgress({ scanned: { x: 7 } }),
      async (dir) =>
        (await PurchaseStore.open(dir, log)).store.settle({ id: 'a', itemHash: 'h', settledAtMs: 1 }),
      async (dir) => (await PurchaseStore.open(dir, log)).store.writeProgress({ charged: { file: 8 } }),
    ],
    read: async (dir) => (await PurchaseStore.open(dir, log)).records,
  },
  'results of checks': {
    steps: [
      async (dir) => {
        const store = await Store.open(dir, log);
        await store.sync([namedTarget({ name: 'web', url: 'http://web.test/' })], NOW);
      },
      ...[1, 2].map((n) => async (dir: string) => {
        const store = await Store.open(dir, log);
        await store.add([{ service: store.services[0]!, result: result(NOW + n) }]);
      }),
    ],
    read: async (dir) =>
      (await Store.open(dir, log)).services.map(({ history, ...service }) => [service, history.toRecord()]),
  },
  'operations that owners asked a compute node for': {
    steps: ['a', 'b'].map((key) => async (dir) => {
      await makeDirectory(dir);
      const replays = await Replays.load({ windowMs: 1_000 }, join(dir, 'operations.jsonl'), log, NOW);
      await replays.note(ADDRESS, key, NOW);
    }),
    read: (dir) => readTextIfAny(join(dir, 'operations.jsonl')),
  },
  "a compute node's instances, also put aside and taken back": {
    steps: [
      (dir) => writeRecord(dir, newRecord(ID, wanted, NOW)),
      (dir) => putAside(dir, newRecord(ID, wanted, NOW), 'moved', NOW),
      (dir) => takeBack(dir, ID),
    ],
    read: async (dir) => [
      await readRecords(dir, log),
      (await listReleased(dir)).map(({ directory: _, ...release }) => release),
    ],
  },
  'texts of a compute node': {
    steps: [
      async (dir) => {
        await makeDirectory(dir);
        await loadOrCreateText(join(dir, 'prefix'), () => 'fd00::/64', 0o644);
      },
    ],
    read: (dir) => readTextIfAny(join(dir, 'prefix')),
  },
  "a user's keys, also replaced ones": {
    steps: ['1', '2'].map((digit) => (dir) => importKey(dir, 'default', digit.repeat(64), true)),
    read: async (dir) => [
      (await listKeys(dir)).keys.map(({ address }) => address),
      await listKeys(join(dir, 'keys')),
    ],
  },
  'what a user remembers of an instance': {
    steps: ['one', 'two'].map((file) => (dir) => rememberInstance(dir, ID, `/${file}`)),
    read: (dir) => findRecord(dir, ID),
  },
};

describe('what was acknowledged survives a power cut', () => {
  for (const [name, kept] of Object.entries(KEPT)) test(name, () => check(kept));

  test('and what was only written does not: else this would prove nothing', async () => {
    const renamed = async (dir: string) => {
      await makeDirectory(dir);
      await writeFile(join(dir, 'draft'), 'x', { flush: true });
      await rename(join(dir, 'draft'), join(dir, 'file'));
    };
    const read = (dir: string) => readTextIfAny(join(dir, 'file'));
    await assert.rejects(check({ steps: [renamed], read }), /after step 0/);
    const unsynced = async (dir: string) => {
      await makeDirectory(dir);
      await writeFile(join(dir, 'file'), 'x');
      await makeDirectory(join(dir, 'more'));
    };
    await assert.rejects(check({ steps: [unsynced], read }), /after step 0/);
  });
});
