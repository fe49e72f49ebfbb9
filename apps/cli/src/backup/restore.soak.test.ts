import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { CoreClient, createSigner, generatePrivateKey } from '@skerry/client';
import { startDaemon } from '../testing/parts.ts';
import { findFreePorts } from '../testing/ports.ts';
import { say, skerry, succeed, until } from '../testing/shell.ts';

/** A core node is saved under load and lost with all it has; restored, it ends with its peer's digest. Times beside a plain copy. */

const MESSAGES = 3_000;
const WRITERS = 50;
const FILES = 16;
const FILE_BYTES = 8 * 1024 * 1024;
/** Only what hangs takes as long. */
const TIMEOUT_MS = 600_000;
const MEBIBYTE = 1024 * 1024;

const signer = createSigner(generatePrivateKey());
const core = (directory: string, port: number, peers: string) =>
  startDaemon('core', {
    SKERRY_CORE_DATA_DIR: directory,
    SKERRY_CORE_PORT: String(port),
    SKERRY_CORE_HOST: '127.0.0.1',
    SKERRY_CORE_PEERS: peers,
    SKERRY_CORE_SYNC_INTERVAL_SECONDS: '2',
    SKERRY_CORE_RATE_LIMITS: 'no',
  });
const digestOf = async (url: string) => {
  const { cursor: _, ...digest } = (await (await fetch(`${url}/api/v0/state/digest`)).json()) as {
    cursor: string;
  };
  return JSON.stringify(digest);
};
const timed = async (body: () => Promise<unknown>) => {
  const startMs = performance.now();
  await body();
  return (performance.now() - startMs) / 1000;
};

/** Posts at most so many messages with so many writers; the hashes of those that were acknowledged. */
function startWriting(url: string, most: number) {
  const hashes: string[] = [];
  const state = { begun: 0, isOver: false };
  const write = async () => {
    const client = new CoreClient({ url, signer });
    while (!state.isOver && state.begun++ < most) {
      const content = { type: 'note', content: { n: randomBytes(8).toString('hex'), text: 'x'.repeat(500) } };
      hashes.push((await client.postMessage({ type: 'POST', content })).item_hash);
    }
  };
  const done = Promise.all(Array.from({ length: WRITERS }, write));
  return { hashes, done, state };
}

async function fill(url: string): Promise<string[]> {
  const client = new CoreClient({ url, signer });
  const kept: string[] = [];
  for (let n = 0; n < FILES; n++) {
    const bytes = randomBytes(FILE_BYTES);
    const hash = createHash('sha256').update(bytes).digest('hex');
    await client.storeFile(new Blob([bytes]), `file-${n}`, hash);
    kept.push(hash);
  }
  say(`${FILES} files of ${FILE_BYTES / MEBIBYTE} MiB are stored`);
  const writing = startWriting(url, MESSAGES);
  await writing.done;
  say(`${writing.hashes.length} messages are stored`);
  return [...kept, ...writing.hashes];
}

test('a core node saved under load, lost and restored ends with the digest of its peer', async () => {
  const home = await mkdtemp(join(tmpdir(), 'skerry-restore-soak-'));
  await using stack = new AsyncDisposableStack();
  stack.defer(() => rm(home, { recursive: true, force: true }));
  const [first, restored, file, copy] = ['first', 'restored', 'core.skerry', 'copy'].map((name) =>
    join(home, name),
  ) as [string, string, string, string];
  const [port] = (await findFreePorts(1)) as [number];
  const url = `http://127.0.0.1:${port}`;
  await using other = await core(join(home, 'other'), 0, url);
  let acknowledged: readonly string[];
  {
    await using node = await core(first, port, other.url);
    const before = await fill(node.url);
    const writing = startWriting(node.url, Number.POSITIVE_INFINITY);
    await until('load', TIMEOUT_MS, async () => writing.hashes.length > WRITERS);
    acknowledged = [...before, ...writing.hashes];
    const backupS = await timed(() => skerry('backup', file, '--role', 'core', '--data-dir', first));
    const meanwhile = writing.hashes.length;
    writing.state.isOver = true;
    await writing.done;
    const bytes = Number((await succeed('du', '--summarize', '--bytes', first)).split('\t')[0]);
    await mkdir(copy);
    const copyS = await timed(async () => {
      await succeed('cp', '--archive', join(first, 'files'), join(first, 'postgres', 'cluster'), copy);
      await succeed('sync', '--file-system', copy);
    });
    say(
      `backup ${backupS.toFixed(1)} s under load (${meanwhile} messages meanwhile), ${((await stat(file)).size / MEBIBYTE).toFixed(0)} MiB of ${(bytes / MEBIBYTE).toFixed(0)}; a plain copy of the same took ${copyS.toFixed(1)} s`,
    );
    process.kill(node.pid, 'SIGKILL');
  }
  await rm(first, { recursive: true });
  say('the node is lost, with its disk');
  const restoreS = await timed(() => skerry('restore', file, '--data-dir', restored));
  await rm(join(home, 'again'), { recursive: true, force: true });
  const copyBackS = await timed(async () => {
    await succeed('cp', '--archive', copy, join(home, 'again'));
    await succeed('sync', '--file-system', home);
  });
  say(`restore ${restoreS.toFixed(1)} s; a plain copy ${copyBackS.toFixed(1)} s`);
  {
    await using node = await core(restored, 0, '');
    const client = new CoreClient({ url: node.url });
    for (const hash of acknowledged.slice(0, FILES)) {
      const bytes = Buffer.from(await (await client.getFile(hash)).arrayBuffer());
      assert.equal(createHash('sha256').update(bytes).digest('hex'), hash);
    }
    for (const hash of acknowledged.slice(FILES))
      assert.equal((await client.getMessage(hash)).item_hash, hash);
    say(`all ${acknowledged.length} that were acknowledged before the backup are there`);
  }
  await using node = await core(restored, port, other.url);
  const equalMs = await until('equal digests', TIMEOUT_MS, async () => {
    const [one, two] = await Promise.all([digestOf(node.url), digestOf(other.url)]);
    return one === two;
  });
  say(`equal digests ${(equalMs / 1000).toFixed(1)} s after its start`);
});
