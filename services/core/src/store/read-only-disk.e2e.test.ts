import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { createSigner, signMessage } from '@skerry/client';
import { until } from '@skerry/kit/testing/until';
import type { NodeProcess } from '../testing/node.ts';
import { mountSmallDisks, NO_MOUNTS } from '../testing/small-disks.ts';

const SIZE_MIB = 512;
const alice = createSigner(`0x${'a1'.repeat(32)}`);

async function health({ url }: NodeProcess) {
  const { status, checks } = (await (await fetch(`${url}/health`)).json()) as {
    status: string;
    checks: { disk: { reason?: string; takes_writes: boolean } };
  };
  const { reason, takes_writes } = checks.disk;
  return { status, reason, takes_writes };
}

async function store({ url }: NodeProcess, text: string) {
  const form = new FormData();
  form.append('file', new Blob([text]));
  const response = await fetch(`${url}/api/v0/storage/add_file`, { method: 'POST', body: form });
  const { hash, code } = (await response.json()) as { hash?: string; code?: string };
  return { status: response.status, hash, code };
}

async function post({ url }: NodeProcess): Promise<number> {
  const { body } = signMessage({ type: 'POST', content: { type: 'note', content: {} } }, alice);
  const headers = { 'content-type': 'application/json' };
  return (await fetch(`${url}/api/v0/messages`, { method: 'POST', headers, body })).status;
}

/** As a kernel does with a file system whose disk has failed. */
test('a disk of files that is read-only is said so to clients and in health, also after a start, until it can be written', {
  skip: NO_MOUNTS,
}, async (t) => {
  const home = await mkdtemp(join(tmpdir(), 'skerry-read-only-'));
  t.after(() => rm(home, { recursive: true, force: true }));
  const files = join(home, 'data', 'core', 'files');
  await mkdir(files, { recursive: true });
  await using disks = await mountSmallDisks([files], home, SIZE_MIB);
  const remount = (how: 'ro' | 'rw') =>
    execFileSync('nsenter', [disks.namespace, 'mount', '-o', `remount,${how}`, files]);
  let core = await disks.start();
  t.after(() => core.end('SIGKILL'));
  assert.equal((await health(core)).takes_writes, true);
  const { hash } = await store(core, 'before');

  remount('ro');
  const check = async () => {
    const { status, code } = await store(core, 'while it cannot be written');
    assert.deepEqual([status, code], [503, 'STORAGE_UNAVAILABLE']);
    const {
      status: whole,
      reason,
      takes_writes,
    } = await until(
      'health says it',
      () => health(core),
      (one) => one.status === 'degraded',
    );
    assert.deepEqual([whole, takes_writes], ['degraded', false]);
    assert.match(reason!, /^files cannot be written \(EROFS in .*\/files\): uploads are refused/);
    const kept = await fetch(`${core.url}/api/v0/storage/raw/${hash}`);
    assert.deepEqual([kept.status, await kept.text(), await post(core)], [200, 'before', 200]);
  };
  await check();
  await core.end('SIGTERM');
  core = await disks.start();
  await check();

  remount('rw');
  await until(
    'it is well',
    () => health(core),
    (one) => one.status === 'ok' && one.takes_writes,
  );
  assert.equal((await store(core, 'after')).status, 200);
  await core.end('SIGTERM');
  assert.deepEqual(
    (await readdir(disks.inside[0]!)).filter((name) => name.startsWith('.')),
    [],
    'what tries whether it can be written leaves nothing',
  );
});

test('a disk of files that has space and no inode is said so in health, until it has one', {
  skip: NO_MOUNTS,
}, async (t) => {
  const home = await mkdtemp(join(tmpdir(), 'skerry-no-inodes-'));
  t.after(() => rm(home, { recursive: true, force: true }));
  const files = join(home, 'data', 'core', 'files');
  await mkdir(files, { recursive: true });
  await using disks = await mountSmallDisks([files], home, SIZE_MIB, ['nr_inodes=2000']);
  const core = await disks.start();
  t.after(() => core.end('SIGKILL'));
  assert.equal((await health(core)).takes_writes, true);
  const taken = join(disks.inside[0]!, 'incoming', 'taken');
  await mkdir(taken);
  for (let n = 0, hasMore = true; hasMore; n++)
    hasMore = await writeFile(join(taken, String(n)), '').then(
      () => true,
      () => false,
    );
  const { status, code } = await store(core, 'where no inode is left');
  assert.deepEqual([status, code], [507, 'STORAGE_FULL']);
  const { status: whole, reason } = await until(
    'health says it',
    () => health(core),
    (one) => !one.takes_writes,
  );
  assert.equal(whole, 'degraded');
  assert.match(
    reason!,
    /^files cannot be written \(ENOSPC in .*\/files, whose disk has space: inodes or a quota /,
  );
  await rm(taken, { recursive: true });
  await until(
    'it is well',
    () => health(core),
    (one) => one.status === 'ok' && one.takes_writes,
  );
  assert.equal((await store(core, 'after')).status, 200);
});
