import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { AppError } from '@skerry/protocol';
import type { BackupHead } from './format.ts';
import { openBackup } from './read.ts';
import { type BackupMember, type BackupPlan, writeBackup } from './write.ts';

const HEAD: BackupHead = {
  format: 1,
  role: 'scheduler',
  version: '0.1.0',
  made_at: '2026-11-23T00:00:00.000Z',
  address: null,
  data_dir: '/data',
  holds: ['secret'],
  absent: [],
};
const PASSPHRASE = 'correct horse battery staple';
/** A guess costs milliseconds, where a test says nothing of guesses: as it is, each sealing and opening takes a third of a second. */
const QUICK = { workFactor: 10 };
const none = () => assert.fail('no passphrase is needed');

const file = (path: string, bytes: Uint8Array): BackupMember => ({
  ...{ path, kind: 'file', mode: 0o600, sizeBytes: bytes.length, mtimeMs: 1_700_000_000_000 },
  content: async function* () {
    for (let at = 0; at < bytes.length; at += 70_000) yield bytes.subarray(at, at + 70_000);
  },
});
const directory = (path: string): BackupMember => ({
  ...{ path, kind: 'directory', mode: 0o700, sizeBytes: 0, mtimeMs: 0 },
  content: async function* () {},
});

const FILES: readonly (readonly [string, Buffer])[] = [
  ['data/key', Buffer.from('0x1\n')],
  ['data/empty', Buffer.alloc(0)],
  ['data/block', randomBytes(512)],
  [`data/${'ü'.repeat(80)}/${'long'.repeat(30)}`, randomBytes(3_000)],
  ['data/with\nline end and \\', Buffer.from('x')],
  ['data/large', randomBytes(300_000)],
];

async function write(passphrase?: string, more: Partial<BackupPlan> = QUICK): Promise<Buffer> {
  async function* members() {
    yield directory('data/folder');
    for (const [path, bytes] of FILES) yield file(path, bytes);
  }
  return buffer(writeBackup({ head: HEAD, members: members(), database: () => null, passphrase, ...more }));
}

async function* pieces(bytes: Uint8Array, length = 8_191): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += length) yield bytes.subarray(at, at + length);
}

async function read(bytes: Uint8Array, passphrase: () => Promise<string> = none) {
  const backup = await openBackup(pieces(bytes), passphrase);
  const found: [string, Buffer][] = [];
  for await (const member of backup.members) {
    if (member.kind === 'file') found.push([member.path, await buffer(member.content)]);
    else assert.equal(member.path, 'data/folder');
  }
  return { head: backup.head, found, end: backup.end() };
}

const failsWith = (code: string) => (error: unknown) => error instanceof AppError && error.code === code;

describe('a backup', () => {
  let home: string;
  before(async () => {
    home = await mkdtemp(join(tmpdir(), 'skerry-backup-'));
  });
  after(() => rm(home, { recursive: true, force: true }));

  test('gives back what was put into it, sealed or not', async () => {
    for (const passphrase of [undefined, PASSPHRASE]) {
      const bytes = await write(passphrase, {});
      if (passphrase)
        assert.match(bytes.toString('latin1'), /^age-encryption\.org\/v1\n-> scrypt \S{22} 17\n/);
      const { head, found, end } = await read(bytes, async () => PASSPHRASE);
      assert.deepEqual(head, HEAD);
      assert.deepEqual(found, FILES);
      assert.equal(end.members, FILES.length + 1);
    }
  });

  test('is checked also where nobody reads the files', async () => {
    const backup = await openBackup(pieces(await write()), none);
    for await (const _ of backup.members);
    assert.equal(backup.end().members, FILES.length + 1);
  });

  test('any other tool opens: zstd or node, tar, sha256sum', async () => {
    const path = join(home, 'a.tar');
    const { createZstdDecompress } = await import('node:zlib');
    const stream = createZstdDecompress();
    stream.end(await write());
    await writeFile(path, await buffer(stream));
    const run = promisify(execFile);
    await run('tar', ['-xf', path, '-C', home]);
    await run('sha256sum', ['--check', '--quiet', 'sums/000001'], { cwd: home });
    for (const [name, bytes] of FILES) assert.deepEqual(await readFile(join(home, name)), bytes);
  });

  test('that is cut off anywhere, or of which a byte is flipped, is refused', async () => {
    for (const passphrase of [undefined, PASSPHRASE]) {
      const bytes = await write(passphrase);
      const open = async () => PASSPHRASE;
      for (const length of [0, 10, 300, 1_000, 100_000, bytes.length - 1])
        await assert.rejects(read(bytes.subarray(0, length), open), failsWith('BACKUP_DAMAGED'), `${length}`);
      for (const at of [2, 500, 5_000, bytes.length >> 1, bytes.length - 3]) {
        const flipped = Buffer.from(bytes);
        flipped[at]! ^= 1;
        await assert.rejects(read(flipped, open), failsWith('BACKUP_DAMAGED'), `${passphrase} ${at}`);
      }
    }
  });

  test('that goes on after its end is refused, however much follows and wherever it begins', async () => {
    const bytes = await write();
    for (const more of [Buffer.from([0]), Buffer.from('junk'), randomBytes(300_000)])
      for (const length of [bytes.length, 8_191, bytes.length + more.length]) {
        const longer = pieces(Buffer.concat([bytes, more]), length);
        await assert.rejects(async () => {
          for await (const _ of (await openBackup(longer, none)).members);
        }, failsWith('BACKUP_DAMAGED'));
      }
  });

  test('needs its passphrase', async () => {
    const bytes = await write(PASSPHRASE);
    await assert.rejects(
      read(bytes, async () => 'another'),
      failsWith('PASSPHRASE_WRONG'),
    );
    assert.ok(!bytes.includes('scheduler'));
  });

  test('leads nowhere outside', async () => {
    for (const path of ['../key', 'data/../../key', '/etc/passwd', 'data//key', 'data/./key']) {
      async function* members() {
        yield file(path, Buffer.from('x'));
      }
      const bytes = await buffer(writeBackup({ head: HEAD, members: members(), database: () => null }));
      await assert.rejects(read(bytes), failsWith('BACKUP_DAMAGED'), path);
    }
  });

  test('of a newer form is not guessed at', async () => {
    async function* members() {}
    const head = { ...HEAD, format: 2 };
    const bytes = await buffer(writeBackup({ head, members: members(), database: () => null }));
    await assert.rejects(read(bytes), failsWith('BACKUP_UNFIT'));
  });

  test('lets go of what it reads where nobody takes more of it, sealed or not', async () => {
    for (const passphrase of [undefined, PASSPHRASE]) {
      const isOver = Promise.withResolvers<void>();
      async function* members(): AsyncGenerator<BackupMember> {
        try {
          for (let n = 0; ; n++) yield file(`data/${n}`, randomBytes(100_000));
        } finally {
          isOver.resolve();
        }
      }
      const full = new Writable({ write: (_bytes, _encoding, done) => done(new Error('no space left')) });
      const bytes = writeBackup({
        head: HEAD,
        members: members(),
        database: () => null,
        passphrase,
        ...QUICK,
      });
      await assert.rejects(pipeline(bytes, full), /no space left/);
      await isOver.promise;
    }
  });

  test('stops with the failure of what was to be read', async () => {
    async function* members(): AsyncGenerator<BackupMember> {
      yield file('data/key', Buffer.from('x'));
      throw new AppError('DATABASE_UNAVAILABLE', 'gone');
    }
    const bytes = buffer(writeBackup({ head: HEAD, members: members(), database: () => null }));
    await assert.rejects(bytes, failsWith('DATABASE_UNAVAILABLE'));
  });
});
