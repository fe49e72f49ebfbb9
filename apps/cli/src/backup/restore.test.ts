import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import {
  chown,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { acquireLock, loadOrCreateKeyFile, writeBackup } from '@skerry/kit';
import { skerryHere } from '../testing/here.ts';
import { run, SKERRY } from '../testing/shell.ts';

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
  const save = (path: string) =>
    skerry(['backup', path, ...role, '--data-dir', from, '--encrypt-to', passphrase]);
  const nowhere = await save(join(home, 'missing', 'scheduler.skerry'));
  assert.equal(nowhere.err, `error: there is no directory ${join(home, 'missing')} (INVALID_PARAMETERS)\n`);
  const below = await save(join(passphrase, 'scheduler.skerry'));
  assert.match(below.err, /^error: cannot write .*ENOTDIR.*\(INVALID_PARAMETERS\)$/m);
  // As of a backup that was killed, whatever its mode; and as of one that is being written.
  const part = `${file}.part`;
  await writeFile(part, 'of one that was killed', { mode: 0o644 });
  {
    using _writing = await acquireLock(part, {});
    assert.match((await save(file)).err, /another backup is being written to .*\.part.*\(FILE_EXISTS\)/);
  }
  assert.equal(await readFile(part, 'utf8'), 'of one that was killed');
  const made = await save(file);
  assert.equal(made.code, 0, made.err);
  assert.equal((await stat(file)).mode & 0o777, 0o600);
  await symlink(passphrase, `${file}.2.part`);
  assert.match((await save(`${file}.2`)).err, /2\.part is there, .*not a file of yours.*\(FILE_EXISTS\)/);

  const bytes = await readFile(file);
  const sealed = await skerry(['backup', 'show', '-'], bytes);
  assert.match(sealed.err, /^error: the backup is encrypted: .*--passphrase-file/);
  const open = ['--passphrase-file', passphrase];
  for (const look of ['show', 'verify']) {
    const { out, err } = await skerry(['backup', look, '-', ...open], bytes);
    assert.match(out, /^role: +scheduler$/m, err);
  }
  // The same count as when it was made.
  const again = await skerry(['--json', 'backup', `${file}.3`, ...role, '--data-dir', from]);
  const { members, bytes: size } = JSON.parse(again.out);
  const read = JSON.parse((await skerry(['--json', 'backup', 'verify', `${file}.3`])).out);
  assert.deepEqual([read.members, read.bytes], [members, size]);
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
  // The disk of the database is not mounted.
  await mkdir(join(place, 'postgres'));
  const made = await skerry('backup', file, '--role', 'core');
  assert.equal(made.code, 0, made.err);
  assert.deepEqual(await readdir(join(place, 'postgres')), []);
  assert.ok(made.out.includes(`not in it: the database: there is none in ${place}; is this where`), made.out);
  const shown = (await skerry('backup', 'show', file)).out;
  assert.match(shown, /^not in it: the database: /m);
  assert.match(
    shown,
    /^not in it: settings: neither .*core\.env nor the environment has any; what the core is/m,
  );

  const into = join(home, 'into');
  const back = await skerry('restore', file, '--data-dir', into);
  assert.equal(back.code, 0, back.err);
  assert.doesNotMatch(back.out, /^settings:/m);
  assert.match(back.out, /^not in it: settings: /m);
  assert.ok(!existsSync(join(into, 'settings')));
  const away = join(home, 'away.skerry');
  // By the name that people know it by.
  const server = { SKERRY_HOME: home, DATABASE_URL: 'postgresql://skerry@db.example/skerry' };
  const apart = await skerryHere(server, ['backup', away, '--role', 'core', '--data-dir', into]);
  assert.equal(apart.code, 0, apart.err);
  assert.doesNotMatch(apart.out, /^not in it: settings: /m);
  const again = await skerry('restore', away, '--data-dir', join(home, 'again'));
  assert.match(again.out, /^settings: +those of the backup are in .*\/again\/settings\//m);
  assert.match(
    await readFile(join(home, 'again', 'settings', 'settings.env'), 'utf8'),
    /^DATABASE_URL=.*postgresql:\/\/skerry@db\.example\/skerry/m,
  );
});

test('a directory of the node on another disk, by a link, is saved; one whose disk is away is told', async (t) => {
  const home = await mkdtemp(join(tmpdir(), 'skerry-restore-'));
  t.after(() => rm(home, { recursive: true }));
  const skerry = (...args: string[]) => skerryHere({ SKERRY_HOME: home }, args);
  await skerry('core', 'address');
  const [place, disk, name] = [join(home, 'data', 'core'), join(home, 'disk'), join('ab', 'cd', 'abcd')];
  await mkdir(dirname(join(disk, 'files', name)), { recursive: true });
  await writeFile(join(disk, 'files', name), 'of a user');
  await symlink(join(disk, 'files'), join(place, 'files'));
  // What a stranger's program may have made.
  await symlink('/etc/passwd', join(disk, 'files', 'ab', 'link'));
  const file = join(home, 'core.skerry');
  const made = await skerry('backup', file, '--role', 'core');
  assert.equal(made.code, 0, made.err);
  const into = join(home, 'into');
  assert.equal((await skerry('restore', file, '--data-dir', into)).code, 0);
  assert.equal(await readFile(join(into, 'files', name), 'utf8'), 'of a user');
  assert.ok(!existsSync(join(into, 'files', 'ab', 'link')));

  await rename(disk, join(home, 'away'));
  const away = await skerry('backup', join(home, 'away.skerry'), '--role', 'core');
  assert.match(away.err, /files is a link that leads to nothing: is its disk mounted\? \(INVALID_CONFIG\)/);
  const without = await skerry('backup', join(home, 'keys.skerry'), '--role', 'core', '--without-files');
  assert.equal(without.code, 0, without.err);
});

/** A backup of a scheduler that is whole, and that no directory can hold: one of its files is below another. */
async function writeImpossible(path: string): Promise<void> {
  const head = {
    ...{ format: 1, role: 'scheduler', version: '0.0.1', made_at: '2026-11-23T00:00:00.000Z' },
    ...{ address: null, data_dir: '/data', holds: ['secret'], absent: [] },
  };
  async function* members() {
    for (const name of ['data/key', 'data/key/below'])
      yield {
        ...({ path: name, kind: 'file', mode: 0o600, sizeBytes: 1, mtimeMs: 0 } as const),
        content: async function* () {
          yield Buffer.from('x');
        },
      };
  }
  await writeFile(path, writeBackup({ head, members: members(), database: () => null }));
}

test('a restore that fails leaves what was there as it was; one that was interrupted before stays known', async (t) => {
  const home = await mkdtemp(join(tmpdir(), 'skerry-restore-'));
  t.after(() => rm(home, { recursive: true }));
  const skerry = (...args: string[]) => skerryHere({ SKERRY_HOME: home }, args);
  const [file, place] = [join(home, 'scheduler.skerry'), join(home, 'data', 'scheduler')];
  await writeImpossible(file);
  await skerry('scheduler', 'address');
  const key = await readFile(join(place, 'key'));
  // Root restores for the user of a service.
  const [uid, gid] = process.geteuid?.() === 0 ? [12_345, 12_345] : [process.getuid!(), process.getgid!()];
  await chown(place, uid, gid);
  assert.notEqual((await skerry('restore', file, '--force')).code, 0);
  assert.deepEqual((await readdir(place)).sort(), ['key', 'running.lock']);
  assert.deepEqual(await readFile(join(place, 'key')), key);
  assert.equal((await stat(join(place, 'running.lock'))).uid, uid);

  await mkdir(join(place, '.restoring'));
  await writeFile(join(place, '.restoring', 'half'), 'x');
  assert.notEqual((await skerry('restore', file, '--force')).code, 0);
  assert.ok(existsSync(join(place, '.restoring')), 'what an earlier one moved may be missing');
  const half = await skerry('backup', join(home, 'half.skerry'), '--role', 'scheduler');
  assert.match(half.err, /a restore to .* did not come to its end: .* \(INVALID_CONFIG\)/);
  await rm(join(place, '.restoring'), { recursive: true });
  await rm(join(place, 'key'));
  const keyless = await skerry('backup', join(home, 'keyless.skerry'), '--role', 'scheduler');
  assert.match(keyless.out, /^not in it: the key: .* has no key; is this where the scheduler keeps/m);
});

test('a disk of its own for the node, or for a part of it, is neither moved aside nor in the way', async (t) => {
  const home = await mkdtemp(join(tmpdir(), 'skerry-restore-'));
  t.after(() => rm(home, { recursive: true }));
  const skerry = (...args: string[]) => skerryHere({ SKERRY_HOME: home }, args);
  const [file, place, into] = [join(home, 'a.skerry'), join(home, 'data', 'scheduler'), join(home, 'into')];
  await skerry('scheduler', 'address');
  const role = ['--role', 'scheduler'];
  assert.equal((await skerry('backup', file, ...role)).code, 0);
  // What a new ext4 has.
  await mkdir(join(into, 'lost+found'), { recursive: true });
  const back = await skerry('restore', file, '--data-dir', into);
  assert.equal(back.code, 0, back.err);
  assert.deepEqual((await readdir(into)).sort(), ['key', 'lost+found', 'running.lock']);

  await mkdir(join(place, 'kept'));
  const restore = [process.execPath, SKERRY, 'restore', file, '--force'].join(' ');
  const mounted = `mount -t tmpfs -o size=1m tmpfs '${join(place, 'kept')}' && exec ${restore}`;
  const child = spawn('unshare', ['--mount', 'sh', '-c', mounted], {
    env: { ...process.env, SKERRY_HOME: home },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  assert.match(await text(child.stderr), /kept is a disk of its own, .* \(INVALID_PARAMETERS\)/);
  assert.deepEqual((await readdir(place)).sort(), ['kept', 'key', 'running.lock']);
});

test('a backup to the disk of the node leaves it the room that its database needs', async (t) => {
  const home = await mkdtemp(join(tmpdir(), 'skerry-restore-'));
  t.after(() => rm(home, { recursive: true }));
  const skerry = `${process.execPath} ${SKERRY}`;
  const file = join(home, 'core.skerry');
  // Of a small disk a core node keeps 64 MiB free.
  const steps = [
    `mount -t tmpfs -o size=80m tmpfs '${home}'`,
    `${skerry} core address`,
    `(${skerry} backup ${file} --role core || ls ${home})`,
    `mount -t tmpfs -o size=9m tmpfs /mnt`,
    `${skerry} backup /mnt/core.skerry --role core --json`,
  ];
  const { stdout, stderr, code } = await run('unshare', [
    ...['--mount', 'sh', '-c', `export SKERRY_HOME='${home}'; ${steps.join(' && ')}`],
  ]);
  assert.equal(code, 0, stderr);
  assert.match(stderr, /is on the disk of the node, which keeps 64.0 MiB of it free: .* \(STORAGE_FULL\)/);
  assert.match(stdout, /^(cache\n)?(config\n)?data$/m);
  assert.doesNotMatch(stdout, /\.part/);
  assert.match(stdout, /"file": "\/mnt\/core.skerry"/);
});

test('a backup that cannot be written to its end is said to be none', async (t) => {
  const home = await mkdtemp(join(tmpdir(), 'skerry-restore-'));
  t.after(() => rm(home, { recursive: true }));
  const place = join(home, 'data', 'scheduler');
  await mkdir(place, { recursive: true });
  await writeFile(join(place, 'large'), randomBytes(4 * 1024 ** 2));

  const child = spawn(process.execPath, [SKERRY, 'backup', '-', '--role', 'scheduler'], {
    env: { ...process.env, SKERRY_HOME: home },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  // As `ssh` does whose connection breaks.
  child.stdout.once('data', () => child.stdout.destroy());
  const [said, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')]);
  assert.match(said, /^error: .* it is incomplete \(INTERNAL\)$/m);
  assert.equal(code, 1);
});
