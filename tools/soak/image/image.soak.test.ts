import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { playProgram } from '@skerry/kit/testing/play';
import { releaseImage } from '../../image/build.ts';
import { releasePackages } from '../../release/npm.ts';
import { createRelease, writeChecksums } from '../../release/release.ts';
import { ROOT } from '../../source.ts';
import { ensureGuest } from './guest.ts';
import type { Plan } from './plan.ts';

const DIRECTORY = mkdtempSync(join(tmpdir(), 'skerry-image-'));
const RELEASE = createRelease(join(DIRECTORY, 'build'));
const DISK_MIB = 256;
/** Where nothing mounted and nothing that runs outlives it. */
const APART = ['--net', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc', '--'];

/** Makes the image, as somebody with this umask. Gives the paths of the files. */
async function make(name: string, mask: number): Promise<string[]> {
  const files = join(DIRECTORY, name);
  const before = process.umask(mask);
  try {
    return (await releaseImage({ ...RELEASE, files })).map((file) => join(files, file));
  } finally {
    process.umask(before);
  }
}

/** A file system with what a person downloads. */
function makeDisk(directory: string): string {
  const disk = `${directory}.ext4`;
  cpSync(join(ROOT, 'deploy'), join(directory, 'deploy'), { recursive: true });
  execFileSync('mke2fs', ['-q', '-t', 'ext4', '-d', directory, disk, `${DISK_MIB}M`]);
  return disk;
}

const play = (scenario: string, ...args: string[]): Promise<void> =>
  playProgram(scenario, 'unshare', [
    ...APART,
    process.execPath,
    join(import.meta.dirname, scenario),
    ...args,
  ]);

describe('the container image', () => {
  let first: string[] = [];

  before(async () => {
    assert.equal(process.geteuid?.(), 0, 'this soak needs root: it makes an image and virtual machines');
    await releasePackages(RELEASE);
    first = await make('first', 0o022);
  });
  after(() => rmSync(DIRECTORY, { recursive: true, force: true }));

  test('is the same, byte by byte, when it is made again', async () => {
    const sumsOf = (paths: readonly string[]) =>
      paths.map((path) => createHash('sha256').update(readFileSync(path)).digest('hex'));
    assert.deepEqual(sumsOf(await make('again', 0o077)), sumsOf(first));
  });

  test('has a tree in which every daemon serves as the user of the image', async () => {
    const directory = join(DIRECTORY, 'tree');
    mkdirSync(directory);
    await play('tree.ts', first[0]!, directory);
  });

  test('runs with podman, rootless, as docs/container.md says, and loses nothing', async () => {
    const image = await ensureGuest(console.log);
    const directory = join(DIRECTORY, 'podman');
    mkdirSync(directory);
    writeChecksums({ ...RELEASE, files: dirname(first[0]!) });
    const plan: Plan = { image, disk: makeDisk(dirname(first[0]!)) };
    writeFileSync(join(directory, 'plan.json'), JSON.stringify(plan));
    await play('podman.ts', directory);
  });
});
