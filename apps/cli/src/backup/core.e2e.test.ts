import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import {
  chmod,
  chown,
  copyFile,
  mkdir,
  mkdtemp,
  open,
  readdir,
  rm,
  stat,
  truncate,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { CoreClient, createSigner, generatePrivateKey } from '@skerry/client';
import { skerryHere } from '../testing/here.ts';
import { startDaemon } from '../testing/parts.ts';
import { findFreePorts } from '../testing/ports.ts';
import { run, SKERRY, until } from '../testing/shell.ts';

/** Only what hangs takes as long. */
const TIMEOUT_MS = 300_000;
/** Of `nobody`: PostgreSQL refuses a user without a name. */
const SERVICE_ID = 65_534;
const SMALL_FILE = 'kept by a message';

/** Of processes of their own are those of which somebody else's process must be told apart: the first backup and the restore. */
const skerryAlone = (...args: string[]) => run(process.execPath, [SKERRY, ...args]);
const skerry = (...args: string[]) => skerryHere(process.env, args);
const core = (directory: string, port = 0, peers = '') =>
  startDaemon('core', {
    SKERRY_CORE_DATA_DIR: directory,
    SKERRY_CORE_PORT: String(port),
    SKERRY_CORE_HOST: '127.0.0.1',
    SKERRY_CORE_PEERS: peers,
    SKERRY_CORE_SYNC_INTERVAL_SECONDS: '1',
    SKERRY_CORE_GOSSIP: 'no',
  });
const signer = createSigner(generatePrivateKey());
const digestOf = async (url: string) =>
  (await (await fetch(`${url}/api/v0/state/digest`)).json()) as {
    cursor: string;
    messages: { count: number };
  };
const addressOf = async (url: string) => (await new CoreClient({ url }).getInfo()).address;

/** Posts one message after another until it is told to stop; the hashes of those that were acknowledged. */
function startWriting(url: string) {
  const client = new CoreClient({ url, signer });
  const hashes: string[] = [];
  let isOver = false;
  const done = (async () => {
    for (let n = 0; !isOver; n++) {
      const { item_hash } = await client.postMessage({
        type: 'POST',
        content: { type: 'note', content: { n } },
      });
      hashes.push(item_hash);
    }
  })();
  return {
    hashes,
    stop: async () => {
      isOver = true;
      await done;
    },
  };
}

describe('a core node with its embedded database', () => {
  let home: string;
  before(async () => {
    home = await mkdtemp(join(tmpdir(), 'skerry-restore-'));
  });
  after(() => rm(home, { recursive: true, force: true }));

  test('is saved under writes, lost, restored, and ends with the digest of its peer', async () => {
    const [first, restored, file] = [join(home, 'first'), join(home, 'restored'), join(home, 'core.skerry')];
    const passphrase = join(home, 'passphrase');
    await writeFile(passphrase, 'correct horse battery staple\n', { mode: 0o600 });
    const [port] = (await findFreePorts(1)) as [number];
    await using other = await core(join(home, 'other'), 0, `http://127.0.0.1:${port}`);
    let address: string;
    let kept: readonly string[];
    let lastCursor: string;
    let stored: string;
    {
      await using node = await core(first, port, other.url);
      address = await addressOf(node.url);
      const client = new CoreClient({ url: node.url, signer });
      stored = createHash('sha256').update(SMALL_FILE).digest('hex');
      await client.storeFile(new Blob([SMALL_FILE]), 'small', stored);
      const writing = startWriting(node.url);
      await until('messages', TIMEOUT_MS, async () => writing.hashes.length > 20);
      kept = [...writing.hashes];
      const made = await skerryAlone(
        'backup',
        file,
        '--role',
        'core',
        '--data-dir',
        first,
        '--encrypt-to',
        passphrase,
      );
      assert.equal(made.code, 0, made.stderr);
      await writing.stop();
      lastCursor = (await digestOf(node.url)).cursor;
      // What the backup does not have reaches the peer.
      await until('the peer has all', TIMEOUT_MS, async () => {
        const [one, two] = [await digestOf(node.url), await digestOf(other.url)];
        return one.messages.count === two.messages.count;
      });
      assert.equal((await stat(file)).mode & 0o777, 0o600);
      const again = await skerry('backup', file, '--role', 'core', '--data-dir', first);
      assert.match(again.err, /FILE_EXISTS/);
      const running = await skerry('restore', file, '--data-dir', first, '--passphrase-file', passphrase);
      assert.match(running.err, /NODE_RUNNING/);
    }
    await rm(first, { recursive: true });

    const args = ['restore', file, '--data-dir', restored, '--passphrase-file', passphrase, '--json'];
    // Root restores for the user of the service, to whom the directory belongs, where user namespaces are refused.
    await chmod(home, 0o755);
    await mkdir(restored, { mode: 0o700 });
    if (process.geteuid?.() === 0) await chown(restored, SERVICE_ID, SERVICE_ID);
    const bin = join(home, 'bin');
    await mkdir(bin);
    await writeFile(join(bin, 'unshare'), '#!/bin/sh\nexit 1\n', { mode: 0o755 });
    const back = await run(process.execPath, [SKERRY, ...args], {
      ...process.env,
      PATH: `${bin}:${process.env.PATH}`,
    });
    assert.equal(back.code, 0, back.stderr);
    const { uid } = await stat(restored);
    for (const name of await readdir(restored, { recursive: true }))
      assert.equal((await stat(join(restored, name))).uid, uid, name);
    {
      await using node = await core(restored);
      assert.equal(await addressOf(node.url), address);
      const client = new CoreClient({ url: node.url, signer });
      for (const hash of kept) assert.equal((await client.getMessage(hash)).item_hash, hash);
      assert.equal(await (await client.getFile(stored)).text(), SMALL_FILE);
      // A reader of the lost node's events goes on where it was, and misses nothing that is new.
      const ended = new AbortController();
      const { item_hash } = await client.postMessage({
        type: 'POST',
        content: { type: 'note', content: 'new' },
      });
      for await (const event of client.events({ cursor: lastCursor, signal: ended.signal })) {
        if (JSON.stringify(event).includes(item_hash)) ended.abort();
      }
    }
    // As a disk may lose it, or a backup leave it out: the peer has it.
    await rm(join(restored, 'files', stored.slice(0, 2), stored.slice(2, 4), stored));
    await using node = await core(restored, port, other.url);
    const client = new CoreClient({ url: node.url });
    const readStored = async () => (await client.getFile(stored)).text();
    await until(
      'the file is back',
      TIMEOUT_MS,
      async () => (await readStored().catch(() => '')) === SMALL_FILE,
    );
    await until('equal digests', TIMEOUT_MS, async () => {
      const [one, two] = await Promise.all([digestOf(node.url), digestOf(other.url)]);
      return JSON.stringify({ ...one, cursor: '' }) === JSON.stringify({ ...two, cursor: '' });
    });
  });

  test('is not restored from what is damaged or sealed otherwise: nothing is written', async () => {
    const [file, passphrase, wrong] = [
      join(home, 'core.skerry'),
      join(home, 'passphrase'),
      join(home, 'wrong'),
    ];
    await writeFile(wrong, 'another\n');
    const target = join(home, 'target');
    const attempt = async (path: string, secret = passphrase) => {
      const { code, err } = await skerry('restore', path, '--data-dir', target, '--passphrase-file', secret);
      assert.notEqual(code, 0);
      assert.deepEqual(
        (await readdir(target).catch(() => [])).filter((name) => name !== 'running.lock'),
        [],
      );
      return err;
    };
    assert.match(await attempt(file, wrong), /PASSPHRASE_WRONG/);
    const [cut, flipped] = [join(home, 'cut'), join(home, 'flipped')];
    await copyFile(file, cut);
    await truncate(cut, (await stat(file)).size - 70_000);
    assert.match(await attempt(cut), /BACKUP_DAMAGED/);
    await copyFile(file, flipped);
    const handle = await open(flipped, 'r+');
    const byte = Buffer.alloc(1);
    const { size } = await stat(file);
    await handle.read(byte, 0, 1, size >> 1);
    byte[0]! ^= 1;
    await handle.write(byte, 0, 1, size >> 1);
    await handle.close();
    assert.match(await attempt(flipped), /BACKUP_DAMAGED/);
    const shown = await skerry('backup', 'show', file, '--passphrase-file', passphrase, '--json');
    assert.equal(JSON.parse(shown.out).role, 'core');
    assert.equal((await skerry('backup', 'verify', file, '--passphrase-file', passphrase)).code, 0);
    const other = await skerry('restore', file, '--role', 'scheduler', '--passphrase-file', passphrase);
    assert.match(other.err, /BACKUP_UNFIT/);
  });
});
