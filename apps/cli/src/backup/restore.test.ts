import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { loadOrCreateKeyFile } from '@skerry/kit';
import { skerryHere } from '../testing/here.ts';

test('a backup from standard input is shown, verified and restored; a file that was cut off is not', async (t) => {
  const home = await mkdtemp(join(tmpdir(), 'skerry-restore-'));
  t.after(() => rm(home, { recursive: true }));
  const [from, to, kept] = ['from', 'to', 'kept'].map((name) => join(home, name)) as [string, string, string];
  await mkdir(from);
  await loadOrCreateKeyFile(join(from, 'key'));
  const passphrase = join(home, 'passphrase');
  await writeFile(passphrase, 'correct horse battery staple\n');
  const skerry = (args: string[], input?: Uint8Array) => skerryHere({ SKERRY_HOME: home }, args, input);
  const file = join(home, 'scheduler.skerry');
  const role = ['--role', 'scheduler'];
  const made = await skerry(['backup', file, ...role, '--data-dir', from, '--encrypt-to', passphrase]);
  assert.equal(made.code, 0, made.err);

  const bytes = await readFile(file);
  const sealed = await skerry(['backup', 'show', '-'], bytes);
  assert.match(sealed.err, /^error: the backup is encrypted: .*--passphrase-file/);
  const open = ['--passphrase-file', passphrase];
  for (const look of ['show', 'verify']) {
    const { out, err } = await skerry(['backup', look, '-', ...open], bytes);
    assert.match(out, /^role: +scheduler$/m, err);
  }
  const into = [...role, ...open, '--data-dir'];
  const cut = await skerry(['restore', '-', ...into, kept], bytes.subarray(0, -1));
  assert.match(cut.err, /\(BACKUP_DAMAGED\)/);
  assert.ok(!existsSync(kept));
  const back = await skerry(['restore', '-', ...into, to], bytes);
  assert.equal(back.code, 0, back.err);
  assert.deepEqual(await readFile(join(to, 'key')), await readFile(join(from, 'key')));
});

test('a core node without its database, and one without settings, is told as what it is', async (t) => {
  const home = await mkdtemp(join(tmpdir(), 'skerry-restore-'));
  t.after(() => rm(home, { recursive: true }));
  const skerry = (...args: string[]) => skerryHere({ SKERRY_HOME: home }, args);
  const { code } = await skerry('core', 'address');
  assert.equal(code, 0);
  const file = join(home, 'core.skerry');
  const place = join(home, 'data', 'core');
  const made = await skerry('backup', file, '--role', 'core');
  assert.equal(made.code, 0, made.err);
  assert.ok(made.out.includes(`not in it: the database: there is none in ${place}; is this where`), made.out);
  assert.match((await skerry('backup', 'show', file)).out, /^not in it: the database: /m);

  const into = join(home, 'into');
  const back = await skerry('restore', file, '--data-dir', into);
  assert.equal(back.code, 0, back.err);
  assert.doesNotMatch(back.out, /^settings:/m);
  assert.ok(!existsSync(join(into, 'settings')));
  const away = join(home, 'away.skerry');
  assert.equal((await skerry('backup', away, '--role', 'core', '--data-dir', into)).code, 0);
  const again = await skerry('restore', away, '--data-dir', join(home, 'again'));
  assert.match(again.out, /^settings: +those of the backup are in .*\/again\/settings\//m);
});
