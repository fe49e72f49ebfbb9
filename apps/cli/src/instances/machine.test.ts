import assert from 'node:assert/strict';
import { appendFile, mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { AppError, type Phase, sha256Hex } from '@skerry/protocol';
import type { BackupView } from '@skerry/protocol/api/compute/machines';
import { checkReadable, openBlob } from '../files/blob.ts';
import { createOutput } from '../output/output.ts';
import { createTestDir } from '../testing/run.ts';
import { explainAbsence, fetchCopy, silenceOf } from './machine.ts';

const output = () => createOutput(process.stdout, process.stderr, { json: true, colours: false });

/** A node that has made a backup of these bytes. */
function nodeWith(text: string, checksum: string) {
  const backup: BackupView = {
    ...{ backup_id: 'b', state: 'done', size: text.length, checksum, download_url: '/b', volumes: [] },
    ...{ created_at: '2026-01-01T00:00:00Z', expires_at: '2026-01-02T00:00:00Z', reason: null },
  };
  const kept = new Set<string>();
  return {
    kept,
    url: 'http://node',
    async startBackup() {
      kept.add('b');
      return backup;
    },
    listBackups: async () => [backup],
    fetchBackup: async () => new Response(text),
    async deleteBackup(id: string) {
      kept.delete(id);
      return {};
    },
  };
}

test('only its owner can read a backup, and the copy at the node is released whatever becomes of it', async () => {
  await using home = await createTestDir();
  const path = join(home.path, 'disk');
  const good = nodeWith('disk', `sha256:${sha256Hex('disk')}`);
  assert.deepEqual(await fetchCopy(good, output(), path), { path, size: 4, sha256: sha256Hex('disk') });
  assert.equal(await readFile(path, 'utf8'), 'disk');
  assert.equal((await stat(path)).mode & 0o777, 0o600, 'a disk has private keys in it');
  assert.equal(good.kept.size, 0);

  const wrong = nodeWith('dusk', `sha256:${sha256Hex('disk')}`);
  await assert.rejects(fetchCopy(wrong, output(), path), { code: 'FILE_CORRUPT' });
  assert.equal(wrong.kept.size, 0);

  // What was written stays good where only the node does not let go.
  const deaf = { ...good, deleteBackup: () => Promise.reject(new Error('silence')) };
  assert.equal((await fetchCopy(deaf, output(), path)).size, 4);
});

test('a disk image that is no file, or is changed while it is sent, is told so', async () => {
  await using home = await createTestDir();
  await assert.rejects(openBlob(join(home.path, 'none')), {
    code: 'INVALID_PARAMETERS',
    message: /there is no file/,
  });
  await mkdir(join(home.path, 'directory'));
  await assert.rejects(openBlob(join(home.path, 'directory')), {
    code: 'INVALID_PARAMETERS',
    message: /is a directory: pack it into one file/,
  });
  const path = join(home.path, 'image');
  await writeFile(path, Buffer.alloc(2 * 1024 ** 2));
  const image = await openBlob(path);
  await checkReadable(image);
  await appendFile(path, 'more');
  await assert.rejects(checkReadable(image), { code: 'INVALID_PARAMETERS', message: /was changed/ });
});

test('of a console that has said nothing, the phase is told', () => {
  const reason = { code: 'IMAGE_BUILDING', message: 'building debian:12: 20 %' };
  assert.equal(
    silenceOf({ name: 'web', phase: 'preparing', reason }),
    `its console has said nothing; web is preparing: ${reason.message}`,
  );
  assert.equal(
    silenceOf({ name: 'web', phase: 'running', reason: null }),
    'its console has said nothing; web is running',
  );
});

test('of an instance that its node does not have it is said how it is and what its owner can do', () => {
  const reason = { code: 'NO_CAPACITY', message: 'this node has 512 MiB of memory left of the 1024 needed' };
  const explain = (code: 'INSTANCE_NOT_FOUND' | 'INSTANCE_NOT_READY' | 'NOT_PERMITTED', phase: Phase) =>
    explainAbsence(new AppError(code, 'not here'), { name: 'web', phase, reason }, 'my web') as AppError;
  const hintOf = ({ details }: AppError) => String((details as { hint?: string }).hint);
  for (const code of ['INSTANCE_NOT_FOUND', 'INSTANCE_NOT_READY'] as const) {
    const failed = explain(code, 'failed');
    assert.equal(failed.code, 'INSTANCE_NOT_READY');
    assert.match(failed.message, /^web is failed: .*512 MiB .*; its node says: not here/);
    assert.match(hintOf(failed), /"skerry scheduler explain 'my web'".*"skerry instance delete/);
  }
  assert.match(hintOf(explain('INSTANCE_NOT_FOUND', 'scheduled')), /start 'my web' --wait" waits/);
  assert.equal(explain('NOT_PERMITTED', 'failed').code, 'NOT_PERMITTED');
});
