import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { CoreClient } from '@skerry/client';
import { until } from '@skerry/kit/testing/until';
import { AppError, sha256Hex } from '@skerry/protocol';
import { run } from '../../host/run.ts';
import { TestPrograms } from '../testing/setup.ts';
import { readVolumes } from './asked.ts';
import { listMounts } from './images.ts';

/** Volumes of programs, in real sandboxes. */

const PLAIN = Buffer.from('a file as it is');
const files = new Map<string, Buffer>([[sha256Hex(PLAIN), PLAIN]]);
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
  const core = { getFile: async (name: string) => new Response(new Uint8Array(files.get(name)!)) };
  room = await TestPrograms.open({ core: core as unknown as CoreClient, volumesGib: 4, idleMs: 1_000 });
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
