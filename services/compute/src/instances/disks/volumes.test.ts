import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { buildNetworkMessage, createSigner, generatePrivateKey } from '@skerry/client';
import { AppError, sha256Hex } from '@skerry/protocol';
import type { VersionSource } from '../../files/message.ts';
import { inDirectory, onDiskOf } from '../../testing/directory.ts';
import { type InstanceRecord, instanceDirectory } from '../record/record.ts';
import type { IdleInstance } from '../worker/owner-tasks.ts';
import { listReleased } from './released.ts';
import { findRestored, reinstall, removeDiscarded, restoreDisk } from './replace.ts';
import { dropFetched, makeVolumes } from './volumes.ts';

const signer = createSigner(generatePrivateKey());
const FILE = 'what a volume holds';
const GOING_ON = new AbortController().signal;
const isError = (code: string) => (error: unknown) => error instanceof AppError && error.code === code;

/** A core node with one instance. */
function coreWith(
  volumes: readonly object[],
  more: object = {},
  getFile: () => Response | Promise<Response> = () => new Response(FILE),
): { core: VersionSource; instanceId: string } {
  const content = {
    ...{ allow_amend: false, resources: {}, environment: {} },
    rootfs: { parent: { ref: 'debian:12' }, size_mib: 1_024 },
    volumes,
    ...more,
  };
  const { body, itemHash } = buildNetworkMessage({ type: 'INSTANCE', content }, signer);
  const { message } = JSON.parse(body);
  const core = {
    async getMessage(hash: string) {
      if (hash !== itemHash) throw new AppError('MESSAGE_NOT_FOUND', 'none');
      return { type: 'INSTANCE', ...message, signed_text: null, message };
    },
    getFile: async () => getFile(),
  };
  return { core: core as unknown as VersionSource, instanceId: itemHash };
}

test('volumes are made once, by what the message says; files are whole sectors', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'skerry-volumes-'));
  const room = { directory, diskGib: 2, limitBytes: 1_000 };
  try {
    const { core, instanceId } = coreWith([
      { ref: sha256Hex(FILE), mount: '/opt/given' },
      { ephemeral: true, size_mib: 8, mount: '/srv/../etc' },
      { size_mib: 16, mount: '/srv/kept' },
    ]);
    const made = await makeVolumes(core, { instanceId, ...room }, GOING_ON);
    assert.deepEqual(made, {
      rootMib: 2_024,
      sshKeys: [],
      volumes: [
        { file: 'volume-0.raw', isReadOnly: true, sizeMib: 0, mount: '/opt/given' },
        { file: 'volume-1.raw', isReadOnly: false, sizeMib: 8, mount: null },
        { file: 'volume-2.raw', isReadOnly: false, sizeMib: 16, mount: '/srv/kept' },
      ],
    });
    const given = await readFile(join(directory, 'volume-0.raw'));
    assert.deepEqual([given.length, given.toString('utf8', 0, FILE.length)], [512, FILE]);
    assert.equal((await stat(join(directory, 'volume-1.raw'))).size, 8 * 1024 ** 2);
    await writeFile(join(directory, 'volume-2.raw'), 'written by the guest');
    assert.deepEqual(await makeVolumes(core, { instanceId, ...room }, GOING_ON), made);
    assert.equal(await readFile(join(directory, 'volume-2.raw'), 'utf8'), 'written by the guest');
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});

test('volumes that do not fit, or are not there, are refused; without any nothing is asked for', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'skerry-volumes-'));
  const room = { directory, diskGib: 1, limitBytes: 4 };
  try {
    const refusals: [object, string][] = [
      [{ size_mib: 1_024 }, 'DISK_TOO_SMALL'],
      [{ ref: sha256Hex(FILE) }, 'FILE_TOO_LARGE'],
      [{ ref: sha256Hex('another one') }, 'FILE_TOO_LARGE'],
    ];
    for (const [volume, code] of refusals) {
      const { core, instanceId } = coreWith([volume]);
      await assert.rejects(makeVolumes(core, { instanceId, ...room }, GOING_ON), isError(code));
    }
    const { core } = coreWith([]);
    const none = await makeVolumes(core, { instanceId: '0'.repeat(64), ...room }, GOING_ON);
    assert.deepEqual(none, { volumes: [], rootMib: 1_024, sshKeys: [] });
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});

test('every key of a message is put into the instance; what is none is left out', async () => {
  const keys = ['one', 'two'].map((name) => `ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIE0 ${name}`);
  const { core, instanceId } = coreWith([], { authorized_keys: [keys[0], 'no key', keys[1]] });
  const { sshKeys } = await makeVolumes(
    core,
    { instanceId, directory: '', diskGib: 1, limitBytes: 1 },
    GOING_ON,
  );
  assert.deepEqual(sshKeys, keys);
});

test('a reinstall keeps volumes, or erases those that hold what the guest wrote', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'skerry-volumes-'));
  try {
    const volumes = ['given', 'own'].map((file) => ({ file, isReadOnly: file === 'given' }));
    for (const { file } of volumes) await writeFile(join(directory, file), 'x');
    const instance = {
      directory,
      record: { base: null, volumes },
      stop: async () => {},
      update: async () => {},
    };
    for (const [erases, left] of [
      [false, ['given', 'own']],
      [true, ['given']],
    ] as const) {
      await reinstall(instance as unknown as IdleInstance, directory, 0, erases);
      assert.deepEqual((await readdir(directory)).sort(), left);
    }
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});

test('a reinstall that is cut off, or finds no room, has not happened; what it noted is done later', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'skerry-volumes-'));
  try {
    const volumes = [{ file: 'own', isReadOnly: false }];
    for (const name of ['own', 'disk.qcow2']) await writeFile(join(directory, name), 'x');
    const noted: Partial<InstanceRecord>[] = [];
    const instance = {
      directory,
      record: { id: 'a'.repeat(64), wanted: {}, base: 'bases/x', volumes },
      stop: async () => {},
      update: async (change: Partial<InstanceRecord>) => {
        noted.push(change);
        throw new Error('cut off');
      },
    } as unknown as IdleInstance;
    const there = () => readdir(directory).then((names) => names.sort());
    await writeFile(join(directory, 'released'), 'no directory');
    await assert.rejects(reinstall(instance, directory, 0, true), { code: 'ENOTDIR' });
    assert.deepEqual(await there(), ['disk.qcow2', 'own', 'released']);
    await rm(join(directory, 'released'));
    await assert.rejects(reinstall(instance, directory, 0, true), /cut off/);
    assert.deepEqual(await there(), ['disk.qcow2', 'own', 'released']);
    const [first, undone] = noted;
    assert.deepEqual([first!.base, undone!.base, undone!.discarded], [null, 'bases/x', undefined]);
    await removeDiscarded(directory, first!.discarded);
    assert.deepEqual(await there(), ['released']);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});

test('a reinstall puts the disk aside also where its record is younger than it, and does not know it', () =>
  inDirectory(async (dataDir) => {
    const id = 'a'.repeat(64);
    const directory = instanceDirectory(dataDir, id);
    await mkdir(directory, { recursive: true });
    await writeFile(join(directory, 'disk.qcow2'), 'written');
    const instance = {
      ...{ directory, record: { id, wanted: {}, base: null } },
      ...{ stop: async () => {}, update: async () => {} },
    } as unknown as IdleInstance;
    await reinstall(instance, dataDir, 0, false);
    assert.deepEqual(await readdir(directory), []);
    const [aside] = await listReleased(dataDir);
    assert.equal(await readFile(join(aside!.directory, 'disk.qcow2'), 'utf8'), 'written');
  }));

test('nothing is restored in the place of a disk that is yet to be made: it would go with what that replaces', () =>
  inDirectory(async (directory) => {
    const record = { base: null, discarded: ['disk.qcow2'], wanted: { diskGib: 1 } };
    const instance = { directory, record } as unknown as IdleInstance;
    const sent = join(directory, 'sent');
    await writeFile(sent, 'a disk');
    await assert.rejects(restoreDisk(instance, sent, directory, 0), isError('INSTANCE_NOT_READY'));
    assert.deepEqual(await readdir(directory), ['sent']);
  }));

test('a restore that is cut off is what the disk says: the kernel goes with it', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'skerry-volumes-'));
  try {
    const [disk, draft] = ['disk.qcow2', 'disk.qcow2.new'].map((name) => join(directory, name)) as [
      string,
      string,
    ];
    for (const path of [disk, draft]) await writeFile(path, 'x');
    const { ino } = await stat(draft, { bigint: true });
    const restoring = { inode: `${ino}`, bootsByItself: true };
    assert.deepEqual(await findRestored(directory, restoring), { restoring: undefined });
    await rename(draft, disk);
    const { kernel, failure, ...rest } = await findRestored(directory, restoring);
    assert.deepEqual([kernel, failure, rest.restoring], [null, null, undefined]);
    assert.ok(!('kernel' in (await findRestored(directory, { ...restoring, bootsByItself: false }))));
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});

const MIB = 1024 ** 2;

function* pieces(count: number) {
  for (let index = 0; index < count; index++) yield new Uint8Array(MIB);
}

test('files that an instance names leave the disk its reserve, and no part of one that did not fit', () =>
  onDiskOf(1_024 + 6, async (directory) => {
    const getFile = () => ({ headers: new Headers(), body: pieces(64) }) as unknown as Response;
    const { core, instanceId } = coreWith([{ ref: sha256Hex(FILE) }], {}, getFile);
    const options = { instanceId, directory, diskGib: 1, limitBytes: 1_024 * MIB };
    await assert.rejects(makeVolumes(core, options, GOING_ON), isError('STORAGE_FULL'));
    assert.deepEqual(await readdir(directory), []);
  }));

test('files that an instance names have one limit together, and go where it can never start', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'skerry-volumes-'));
  try {
    const ref = sha256Hex(FILE);
    const { core, instanceId } = coreWith([{ ref }, { ref }, { size_mib: 8 }]);
    const make = (limitBytes: number) =>
      makeVolumes(core, { instanceId, directory, diskGib: 1, limitBytes }, GOING_ON);
    await assert.rejects(make(520), isError('FILE_TOO_LARGE'));
    assert.deepEqual(await readdir(directory), ['volume-0.raw']);
    const disk = join(directory, 'disk.qcow2');
    await writeFile(disk, '');
    await dropFetched(directory, undefined);
    assert.deepEqual((await readdir(directory)).sort(), ['disk.qcow2', 'volume-0.raw'], 'it had its disk');
    await rm(disk);
    await dropFetched(directory, undefined);
    assert.deepEqual(await readdir(directory), []);
    const { volumes } = await make(1_024);
    await dropFetched(directory, volumes);
    assert.deepEqual(
      await readdir(directory),
      ['volume-2.raw'],
      'what the guest may have written to is kept',
    );
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});

test('what is fetched for a machine that is deleted is fetched no further, also from a core node that stalls', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'skerry-volumes-'));
  try {
    let deleting = new AbortController();
    const deleted = new Error('deleted');
    const stalling = () => new Response(new ReadableStream({ pull: () => deleting.abort(deleted) }));
    const silent = () => {
      deleting.abort(deleted);
      return new Promise<Response>(() => {});
    };
    for (const getFile of [stalling, silent]) {
      const { core, instanceId } = coreWith([{ ref: sha256Hex(FILE) }], {}, getFile);
      const room = { directory, diskGib: 1, limitBytes: 1_000 };
      await assert.rejects(makeVolumes(core, { instanceId, ...room }, deleting.signal), deleted);
      deleting = new AbortController();
    }
    assert.deepEqual(await readdir(directory), []);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});
