import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { BOUNDLESS } from '@skerry/database';
import { createLogger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { WriteProbe } from '../../../node/health/write-probe.ts';
import { createTestCore, signers } from '../../../testing/core.ts';
import { NO_MOUNTS } from '../../../testing/small-disks.ts';
import { createDirectoryBlobStore } from '../directory-store.ts';
import { hashOf } from '../testing/blob-suite.ts';
import { FilesDisk, ID_FILE } from './files-disk.ts';
import { guardStore } from './guarded-store.ts';

const log = createLogger('test', 'silent');
const HANG_MS = 300;

const DEVICE = `
  set -e
  truncate -s 64M image && mkfs.ext4 -q image && mkdir disk && mount -o loop image disk
  echo ready
  exec sleep infinity`;

/** A file system on a loop device, in a namespace of its own; undefined where this machine has none. */
async function mountLoop(home: string) {
  const holder = spawn('unshare', ['--mount', 'sh', '-c', DEVICE], {
    cwd: home,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const ended = once(holder, 'exit');
  const [said] = await Promise.race([once(holder.stdout, 'data'), ended.then(() => [])]);
  if (said === undefined) return undefined;
  const disk = join(home, 'disk');
  const freeze = (how: '--freeze' | '--unfreeze') =>
    execFileSync('nsenter', [`--mount=/proc/${holder.pid}/ns/mnt`, 'fsfreeze', how, disk]);
  return {
    inside: `/proc/${holder.pid}/root${disk}`,
    freeze,
    async [Symbol.asyncDispose]() {
      holder.kill('SIGKILL');
      await ended;
    },
  };
}

test('a disk whose writes do not return is said so in health, and clients are refused until they do', {
  skip: NO_MOUNTS,
}, async (t) => {
  const home = await mkdtemp(join(tmpdir(), 'skerry-hanging-'));
  t.after(() => rm(home, { recursive: true, force: true }));
  await using device = await mountLoop(home);
  if (!device) {
    t.skip('needs a loop device and mkfs.ext4');
    return;
  }
  const directory = join(device.inside, 'files');
  await mkdir(directory);
  await writeFile(join(directory, ID_FILE), 'one');
  const disk = new FilesDisk({ directory, id: 'one', log });
  const probe = new WriteProbe({ directories: [directory], reserve: BOUNDLESS, disk, log, hangMs: HANG_MS });
  const blobs = guardStore(await createDirectoryBlobStore(directory), disk);
  await using core = await createTestCore({ blobs, writeProbe: probe });
  const store = async (bytes: Buffer) => {
    const form = new FormData();
    form.set('address', signers.alice.address);
    form.set('signature', signers.alice.sign(hashOf(bytes)));
    form.set('file', new Blob([new Uint8Array(bytes)]));
    const response = await fetch(`${url}/api/v0/storage/store`, { method: 'POST', body: form });
    const { code = 'stored' } = (await response.json()) as { code?: string };
    return `${response.status} ${code}`;
  };
  const url = await core.listen();
  const health = async () => {
    await probe.look();
    const { status, checks } = (await core.get('/health')).body;
    return [status, checks.disk.takes_writes, checks.disk.reason ?? ''];
  };
  const before = Buffer.from('before');
  assert.equal(await store(before), '200 stored');
  assert.deepEqual(await health(), ['ok', true, '']);

  device.freeze('--freeze');
  try {
    // Waits for the disk, until that is known to hang.
    const waiting = store(Buffer.alloc(2_000_000, 1));
    const [status, takesWrites, reason] = await health();
    assert.deepEqual([status, takesWrites], ['degraded', false]);
    assert.match(reason, /^files cannot be written \(a write in .*\/files has not returned for \d+ s\)/);
    assert.equal(await waiting, '503 STORAGE_UNAVAILABLE');
    assert.equal(await store(Buffer.from('later')), '503 STORAGE_UNAVAILABLE');
    const kept = await core.get(`/storage/raw/${hashOf(before)}`);
    assert.deepEqual(
      [kept.status, String(kept.body)],
      [200, 'before'],
      'what the memory knows of it is served',
    );
    assert.equal((await health())[0], 'degraded', 'it is not tried again meanwhile');
  } finally {
    device.freeze('--unfreeze');
  }
  await until('it is well', health, ([status]) => status === 'ok');
  assert.equal(await store(Buffer.from('later')), '200 stored');
});
