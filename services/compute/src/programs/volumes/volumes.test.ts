import assert from 'node:assert/strict';
import { lstat, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import type { CoreClient } from '@skerry/client';
import { until } from '@skerry/kit/testing/until';
import { AppError, sha256Hex } from '@skerry/protocol';
import { promiseRoom } from '../../host/room.ts';
import { run } from '../../host/run.ts';
import { inDirectory, onDiskOf } from '../../testing/directory.ts';
import { attachEarly, type Order } from '../places.ts';
import { TestPrograms } from '../testing/setup.ts';
import { type AskedVolume, readVolumes } from './asked.ts';
import { listMounts, makeReady } from './images.ts';
import { Volumes } from './volumes.ts';

/** Volumes of programs, in real sandboxes. */

const PLAIN = Buffer.from('a file as it is');
const files = new Map<string, Buffer>([[sha256Hex(PLAIN), PLAIN]]);
/** Of other files nothing comes, until nothing of them is there any more. */
let isOver = false;
const stalled: ReadableStreamDefaultController[] = [];

async function getFile(name: string): Promise<Response> {
  const bytes = files.get(name);
  if (bytes) return new Response(new Uint8Array(bytes), { headers: { 'content-length': `${bytes.length}` } });
  if (isOver) throw new AppError('FILE_NOT_FOUND', 'none');
  return new Response(new ReadableStream({ start: (controller) => void stalled.push(controller) }));
}

let home: string;
let packed: string;
let room: TestPrograms;

before(async () => {
  assert.equal(process.geteuid?.(), 0, 'this test needs root');
  home = await mkdtemp(join(tmpdir(), 'skerry-program-volumes-'));
  const source = join(home, 'source');
  await mkdir(source, { mode: 0o700 });
  await writeFile(join(source, 'hello.txt'), 'hello from a volume', { mode: 0o600 });
  await run('mksquashfs', [source, join(home, 'packed'), '-quiet', '-no-progress']);
  const bytes = await readFile(join(home, 'packed'));
  packed = sha256Hex(bytes);
  files.set(packed, bytes);
  const core = { getFile } as unknown as CoreClient;
  room = await TestPrograms.open({ core, volumesGib: 8, idleMs: 1_000 });
  await room.programs.volumes.clear();
});
after(async () => {
  await room[Symbol.asyncDispose]();
  assert.deepEqual(await listMounts(room.directory), [], 'nothing stays mounted');
  await rm(home, { recursive: true, force: true });
});

const CODE = `
import os

def attempt(path, size=1):
    try:
        with open(path, "ab") as file:
            file.write(b"x" * size)
        return os.path.getsize(path)
    except OSError as error:
        return error.strerror

def main(variables):
    return {
        "packed": open("/opt/lib/hello.txt").read(),
        "plain": open("/etc/given").read(),
        "written": [attempt(path) for path in ("/opt/lib/new", "/data/kept", "/scratch/x", "/new")],
        "full": attempt("/scratch/much", 20 << 20),
    }
`;

test('volumes are where a message says: files read-only, own ones of their size, kept where they have a name', async () => {
  const hash = room.add('python3', CODE, {
    volumes: [
      { kind: 'file', mount: '/opt/lib', file: packed },
      { kind: 'file', mount: '/etc/given', file: sha256Hex(PLAIN) },
      { kind: 'own', mount: '/data', sizeMib: 16, name: 'data' },
      { kind: 'own', mount: '/scratch', sizeMib: 16, name: null },
    ],
  });
  for (const kept of [1, 2]) {
    const { code, text } = await room.outcomeOf(hash);
    assert.equal(code, '200', text);
    const READ_ONLY = 'Read-only file system';
    assert.deepEqual(JSON.parse(text), {
      ...{ packed: 'hello from a volume', plain: PLAIN.toString() },
      written: [READ_ONLY, kept, 1, READ_ONLY],
      full: 'No space left on device',
    });
    await until('its sandbox ended', () => room.programs.sandboxes === 0);
    await until('nothing is mounted', async () => (await listMounts(room.directory)).length === 0);
  }
  assert.deepEqual(await room.programs.volumes.listPrograms(), [hash]);
  await room.programs.volumes.erase(hash);
  assert.deepEqual(await room.programs.volumes.listPrograms(), []);
});

test('what this node has no room for runs elsewhere', async () => {
  const volumes = [{ kind: 'own', mount: '/data', sizeMib: 5_000, name: 'data' }] as const;
  assert.equal((await room.outcomeOf(room.add('python3', CODE, { volumes }))).code, 'NO_RUNNER');
});

test('M7: who has volumes that take long to be made ready holds up nobody else, and no memory', async () => {
  const calls = Array.from({ length: 12 }, (_, index) => {
    const volumes = [{ kind: 'file', mount: '/data', file: sha256Hex(`slow ${index}`) }] as const;
    return room.outcomeOf(room.add('python3', 'def main(variables): return 1', { owner: '0xslow', volumes }));
  });
  await until('one of them is fetched', () => stalled.length > 0);
  const volumes = [
    { kind: 'file', mount: '/opt/lib', file: packed },
    { kind: 'own', mount: '/data', sizeMib: 16, name: null },
  ] as const;
  const code = 'def main(variables): return open("/opt/lib/hello.txt").read()';
  const others = [
    room.add('python3', code, { volumes }),
    room.add('python3', 'def main(variables): return 2'),
  ];
  for (const hash of others) {
    const { code, text } = await room.outcomeOf(hash);
    assert.equal(code, '200', text);
  }
  assert.equal(stalled.length, 1, 'of one owner one file is fetched at a time');
  isOver = true;
  stalled[0]!.error(new AppError('FILE_NOT_FOUND', 'none'));
  for (const { code } of await Promise.all(calls)) assert.equal(code, 'FILE_NOT_FOUND');
});

test('volumes of one owner have a share of the disk, also after a restart; files that nobody uses make room', async () => {
  const directory = join(home, 'shares');
  const open = async () => {
    const volumes = new Volumes({ core: { getFile } as unknown as CoreClient, directory, limitMib: 4_096 });
    await volumes.clear();
    return volumes;
  };
  const attach = async (volumes: Volumes, owner: string, asked: readonly AskedVolume[]) => {
    using prepared = await volumes.prepare({
      hash: sha256Hex(`${owner} ${asked[0]!.mount}`),
      owner,
      volumes: asked,
    });
    return await prepared.attach();
  };
  const own = (mount: string, sizeMib: number, name: string | null = 'kept') =>
    [{ kind: 'own', mount, sizeMib, name }] as const;
  const isRefused = (words: RegExp) => (error: unknown) =>
    error instanceof AppError && error.code === 'NO_RUNNER' && words.test(error.message);
  const first = await open();
  await (await attach(first, '0xa', own('/a', 1_500))).detach();
  const scratch = await attach(first, '0xa', own('/scratch', 400, null));
  await assert.rejects(attach(first, '0xa', own('/b', 400)), isRefused(/one owner.* 2048 MiB/));
  await scratch.detach();
  const second = await open();
  await assert.rejects(attach(second, '0xa', own('/b', 600)), isRefused(/one owner/));
  const used = await attach(second, '0xb', [{ kind: 'file', mount: '/opt', file: sha256Hex(PLAIN) }]);
  await (await attach(second, '0xa', own('/b', 548))).detach();
  await (await attach(second, '0xb', own('/c', 2_000))).detach();
  await assert.rejects(attach(second, '0xc', own('/d', 48)), isRefused(/too few are left/));
  await used.detach();
  await (await attach(second, '0xc', own('/d', 48))).detach();
  assert.deepEqual(await readdir(join(directory, 'files')), [], 'the file that nobody used made room');
});

test('what was made for a program that is not started takes no room from others', () =>
  inDirectory(async (directory) => {
    const core = { getFile } as unknown as CoreClient;
    const volumes = new Volumes({ core, directory, limitMib: 1_024 });
    await volumes.clear();
    const own = (mount: string, sizeMib: number) => ({ kind: 'own', mount, sizeMib, name: mount }) as const;
    const orderOf = async (owner: string, ...asked: AskedVolume[]) => {
      using prepared = await volumes.prepare({ hash: sha256Hex(owner), owner, volumes: asked });
      return { attach: () => prepared.attach() } as unknown as Order;
    };
    const isFree = async () => {
      const early = await attachEarly(await orderOf('0xother', own('/data', 900)));
      await early.end();
    };
    const waiting = await attachEarly(await orderOf('0xwaiting', own('/data', 900)));
    await assert.rejects(isFree(), { code: 'NO_RUNNER' });
    await waiting.end();
    await isFree();
    const twice = attachEarly(await orderOf('0xtoo-much', own('/a', 900), own('/b', 900)));
    await assert.rejects(twice, { code: 'NO_RUNNER' });
    await isFree();
    // Another sandbox of the program may have written to it.
    const order = await orderOf('0xcalled', own('/data', 900));
    const late = await attachEarly(order);
    await (await order.attach!()).detach();
    await late.end();
    await assert.rejects(isFree(), { code: 'NO_RUNNER' });
    assert.deepEqual(await listMounts(directory), []);
  }));

test('volumes leave the disk its reserve, and no part of a file that did not fit', () =>
  onDiskOf(1_024 + 24, async (directory) => {
    const body = Array.from({ length: 64 }, () => new Uint8Array(1024 ** 2));
    const pieces = async () => ({ headers: new Headers(), body }) as unknown as Response;
    const volumes = new Volumes({
      core: { getFile: pieces } as unknown as CoreClient,
      ...{ directory, limitMib: 8_192 },
    });
    await volumes.clear();
    const attach = async (volume: AskedVolume) => {
      using prepared = await volumes.prepare({ hash: packed, owner: '0xa', volumes: [volume] });
      return await prepared.attach();
    };
    const own = { kind: 'own', mount: '/own', sizeMib: 16, name: null } as const;
    const isFull = { code: 'NO_RUNNER', message: "this node's disk is full" };
    await (await attach(own)).detach();
    await assert.rejects(attach({ kind: 'file', mount: '/a', file: sha256Hex('large') }), isFull);
    assert.deepEqual(await readdir(join(directory, 'files')), []);
    await writeFile(join(directory, 'other'), Buffer.alloc(32 * 1024 ** 2));
    await assert.rejects(attach(own), isFull);
  }));

test('on a full disk files that nobody uses make room, as many as it takes, and none where all are too few', () =>
  onDiskOf(1_024 + 40, async (directory) => {
    const volumes = new Volumes({ core: { getFile } as unknown as CoreClient, directory, limitMib: 8_192 });
    await volumes.clear();
    const prepare = async (file: string) => {
      const asked = { kind: 'file', mount: '/given', file } as const;
      using _prepared = await volumes.prepare({ hash: packed, owner: '0xa', volumes: [asked] });
      return (await readdir(join(directory, 'files'))).toSorted();
    };
    const names: string[] = [];
    for (const fill of ['a', 'b', 'c', 'd']) {
      const bytes = Buffer.alloc(16 * 1024 ** 2, fill);
      const name = sha256Hex(bytes);
      files.set(name, bytes);
      names.push(`${name}.plain`);
      assert.deepEqual(await prepare(name), names.slice(-2).toSorted());
      files.delete(name);
    }
    await assert.rejects(prepare(packed), { code: 'NO_RUNNER', message: "this node's disk is full" });
    assert.deepEqual((await readdir(join(directory, 'files'))).toSorted(), names.slice(-2).toSorted());
    // An own volume takes nothing yet, but is made beside the reserve only.
    await writeFile(join(directory, 'other'), Buffer.alloc(16 * 1024 ** 2));
    const own = { kind: 'own', mount: '/own', sizeMib: 16, name: null } as const;
    using prepared = await volumes.prepare({ hash: packed, owner: '0xa', volumes: [own] });
    await (await prepared.attach()).detach();
    assert.deepEqual(await readdir(join(directory, 'files')), names.slice(-1));
  }));

test('no archive is unpacked into room that is promised to something else', () =>
  onDiskOf(1_024 + 2_048 + 64, async (directory) => {
    const volumes = new Volumes({ core: { getFile } as unknown as CoreClient, directory, limitMib: 8_192 });
    await volumes.clear();
    const asked = { kind: 'file', mount: '/given', file: packed } as const;
    const asking = { hash: packed, owner: '0xa', volumes: [asked] };
    const other = await promiseRoom(join(directory, 'other'), 128 * 1024 ** 2, 'another file');
    await assert.rejects(volumes.prepare(asking), { code: 'NO_RUNNER' });
    other[Symbol.dispose]();
    using _prepared = await volumes.prepare(asking);
    assert.deepEqual(await readdir(join(directory, 'files')), [`${packed}.ext4`]);
  }));

test('an archive that unpacks to more than it may is too large, and fills no disk', async () => {
  const source = join(home, 'much');
  await mkdir(source);
  await writeFile(join(source, 'x'), Buffer.alloc(32 * 1024 ** 2, 'x'));
  await run('mksquashfs', [source, join(home, 'packed much'), '-quiet', '-no-progress']);
  const bytes = await readFile(join(home, 'packed much'));
  const name = sha256Hex(bytes);
  files.set(name, bytes);
  const directory = join(home, 'ready');
  await mkdir(directory);
  await assert.rejects(makeReady(directory, { getFile } as unknown as CoreClient, name, promiseRoom, 16), {
    code: 'FILE_TOO_LARGE',
    message: 'a volume of a program unpacks to more than 16 MiB',
  });
  assert.deepEqual(await readdir(directory), []);
});

test('a volume without a place is left out; a place that cannot be is refused', async () => {
  const resolve = async () => packed;
  assert.deepEqual(await readVolumes([{ ref: packed }, { size_mib: 1 }], resolve), []);
  assert.deepEqual(await readVolumes([{ size_mib: 1, mount: '/a/b/' }], resolve), [
    { kind: 'own', mount: '/a/b', sizeMib: 1, name: 'volume 0' },
  ]);
  const refused = [
    [{ size_mib: 1, mount: '/usr/lib' }],
    [{ size_mib: 1, mount: '/a/../usr' }],
    [{ size_mib: 1, mount: '/' }],
    [
      { size_mib: 1, mount: '/a' },
      { size_mib: 1, mount: '/a/b' },
    ],
    [{ size_mib: 1, mount: '/a', parent: { ref: packed } }],
  ];
  for (const volumes of refused)
    await assert.rejects(
      readVolumes(volumes, resolve),
      (error) => error instanceof AppError && error.code === 'PROGRAM_UNSUPPORTED',
    );
});

test('what a process that was killed had mounted stays whole, also where a link leads to it and its name has a space', () =>
  inDirectory(async (directory) => {
    const [place, link] = [join(directory, 'a place'), join(directory, 'link')];
    await mkdir(place);
    await symlink(place, link);
    const open = async () => {
      const core = { getFile } as unknown as CoreClient;
      const volumes = new Volumes({ core, directory: join(link, 'volumes'), limitMib: 64 });
      await volumes.clear();
      return volumes;
    };
    const own = { kind: 'own', mount: '/data', sizeMib: 16, name: 'data' } as const;
    const asking = { hash: 'a'.repeat(64), owner: '0x0', volumes: [own] };
    const attach = async (volumes: Volumes) => (await volumes.prepare(asking)).attach();
    const [left] = (await attach(await open())).mounts;
    try {
      await writeFile(join(left!.from, 'kept'), 'by a program');
      // Over it, as whoever looked for something had it.
      await run('mount', ['-t', 'tmpfs', 'tmpfs', left!.from]);
      await mkdir(join(left!.from, 'below'));
      await run('mount', ['-t', 'tmpfs', 'tmpfs', join(left!.from, 'below')]);
      const next = await open();
      assert.deepEqual(await readdir(join(place, 'volumes', 'mounts')), []);
      const { mounts, detach } = await attach(next);
      assert.equal(await readFile(join(mounts[0]!.from, 'kept'), 'utf8'), 'by a program');
      await detach();
    } finally {
      await run('umount', ['-l', left!.from]).catch(() => {});
    }
  }));

test('nothing is erased of what cannot be seen for what it is', () =>
  inDirectory(async (directory) => {
    const core = { getFile } as unknown as CoreClient;
    const volumes = new Volumes({ core, directory, limitMib: 64 });
    const mounted = join(directory, 'mounts', 'one');
    await mkdir(mounted, { recursive: true });
    await writeFile(join(mounted, 'kept'), 'by a program');
    await volumes.clear();
    assert.equal(await readFile(join(mounted, 'kept'), 'utf8'), 'by a program');
    const hash = 'a'.repeat(64);
    const own = { kind: 'own', mount: '/data', sizeMib: 16, name: 'data' } as const;
    const image = join(directory, 'own', hash, `${sha256Hex('data')}.ext4`);
    await mkdir(dirname(image));
    // Whose target nobody can say.
    await symlink(image, image);
    using prepared = await volumes.prepare({ hash, owner: '0xa', volumes: [own] });
    await assert.rejects(prepared.attach(), { code: 'ELOOP' });
    assert.ok((await lstat(image)).isSymbolicLink());
  }));

test('a volume that cannot be mounted stays, and leaves no place of a mount behind with each try', () =>
  inDirectory(async (directory) => {
    const core = { getFile } as unknown as CoreClient;
    const volumes = new Volumes({ core, directory, limitMib: 64 });
    await volumes.clear();
    const hash = 'a'.repeat(64);
    const own = { kind: 'own', mount: '/data', sizeMib: 16, name: 'data' } as const;
    const image = join(directory, 'own', hash, `${sha256Hex('data')}.ext4`);
    await mkdir(dirname(image));
    await writeFile(image, 'damaged');
    using prepared = await volumes.prepare({ hash, owner: '0xa', volumes: [own] });
    await assert.rejects(prepared.attach());
    assert.deepEqual(await readdir(join(directory, 'mounts')), []);
    assert.equal(await readFile(image, 'utf8'), 'damaged');
  }));
