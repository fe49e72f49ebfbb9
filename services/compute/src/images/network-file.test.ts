import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { CoreClient } from '@skerry/client';
import { createLogger, readConfig } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { AppError, sha256Hex } from '@skerry/protocol';
import { computeConfig } from '../config.ts';
import { run } from '../host/run.ts';
import { damageSector, forbid, inDirectory } from '../testing/directory.ts';
import { RealCore } from '../testing/real-core.ts';
import { type FileSource, makeFileImage } from './network-file.ts';
import type { Progress } from './progress.ts';
import { ImageStore } from './store.ts';

const isError = (code: string) => (error: unknown) => error instanceof AppError && error.code === code;

test('an image by hash is fetched, verified and converted once; what is no image, or not there, says so', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'skerry-file-'));
  await using core = await new RealCore().start();
  const storeOf = (
    source: CoreClient,
    cacheDir: string,
    signal = new AbortController().signal,
    table: Readonly<Record<string, string>> = {},
  ) =>
    new ImageStore({
      table,
      cacheDir,
      mirrors: readConfig(computeConfig, { SKERRY_HOME: directory }),
      log: createLogger('test', 'silent'),
      signal,
      files: { source, limitBytes: 4 * 1024 * 1024 },
    });
  const store = storeOf(core.client, directory);
  const put = async (bytes: Uint8Array) => {
    const file = createHash('sha256').update(bytes).digest('hex');
    const blob = new Blob([bytes as BlobPart]);
    const { item_hash: message } = await core.client.storeFile(blob, 'disk', file);
    return { file, message };
  };
  try {
    await run('mke2fs', ['-q', '-t', 'ext4', join(directory, 'ext.raw'), '3M']);
    const { file, message } = await put(await readFile(join(directory, 'ext.raw')));
    const [one, other] = await Promise.all([store.ensure(file, () => {}), store.ensure(file, () => {})]);
    assert.equal(one.buildId, other.buildId);
    assert.deepEqual([one.boot, one.diskMib, one.kernelVersion], ['kernel', 3, '']);
    assert.equal((await store.ensure(file, () => {})).buildId, one.buildId, 'kept');
    assert.equal((await store.ensure(message, () => {})).diskMib, 3, 'by the message that stored it');
    const text = await put(new TextEncoder().encode('no disk at all '.repeat(1_000)));
    await assert.rejects(
      store.ensure(text.file, () => {}),
      isError('INVALID_IMAGE'),
    );
    const large = await put(new Uint8Array(5 * 1024 * 1024));
    await assert.rejects(
      store.ensure(large.file, () => {}),
      isError('FILE_TOO_LARGE'),
    );
    await assert.rejects(
      store.ensure('0'.repeat(64), () => {}),
      isError('UNKNOWN_IMAGE'),
    );

    // Of some files nothing comes.
    const slow = ['1', '2'].map((digit) => digit.repeat(64));
    const ending = new AbortController();
    let fetched = 0;
    const stall = () => {
      fetched++;
      return new Promise(() => {});
    };
    const stalling = new Proxy(core.client, {
      get: (client, name) =>
        name === 'getFile'
          ? (hash: string) => (slow.includes(hash) ? stall() : client.getFile(hash))
          : Reflect.get(client, name).bind(client),
    });
    const named = { 'our:image': file };
    const shared = storeOf(stalling, join(directory, 'shared'), ending.signal, named);
    const theirs = slow.map((name) => shared.ensure(name, () => {}, '0xslow'));
    // Which one comes first is the disk's word.
    await until('one of them is fetched', () => fetched > 0);
    theirs.push(shared.ensure(file, () => {}, '0xslow'));
    const known = await shared.ensure('our:image', () => {}, '0xslow');
    assert.equal(known.diskMib, 3, 'what the operator named waits for no files of owners');
    const ours = await shared.ensure(file, () => {}, '0xother');
    assert.equal(ours.diskMib, 3, 'nobody waits for the images of another owner');
    ending.abort(new Error('over'));
    const ended = await Promise.allSettled(theirs);
    for (const one of ended) assert.match(String(one.status === 'rejected' && one.reason), /over/);
    assert.equal(fetched, 1, 'of one owner one at a time');

    // A core node that sends another file than the one that is asked for, under its own right name.
    const lying = new Proxy(core.client, {
      get: (client, name) =>
        name === 'getFile' ? () => client.getFile(file) : Reflect.get(client, name).bind(client),
    });
    const deceived = storeOf(lying, join(directory, 'deceived'));
    for (const name of [text.file, text.message])
      await assert.rejects(
        deceived.ensure(name, () => {}),
        isError('FILE_CORRUPT'),
      );
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});

test('how far an image is fetched is told by the percent, however small its pieces are', () =>
  inDirectory(async (directory) => {
    const piece = new Uint8Array(1_024);
    const count = 4_096;
    let sent = 0;
    const pull = (controller: ReadableStreamDefaultController) =>
      sent++ < count ? controller.enqueue(piece) : controller.close();
    const headers = { 'content-length': `${count * piece.length}` };
    const files = {
      getMessage: () => Promise.reject(new AppError('MESSAGE_NOT_FOUND', 'none')),
      getFile: async () => new Response(new ReadableStream({ pull }), { headers }),
    } as unknown as FileSource;
    const reports: Progress[] = [];
    const report = (one: Progress) => void reports.push(one);
    const name = sha256Hex(Buffer.alloc(count * piece.length));
    const { signal } = new AbortController();
    await assert.rejects(
      makeFileImage(files, name, directory, 8 * 1024 ** 2, report, signal),
      isError('INVALID_IMAGE'),
    );
    const percents = Array.from({ length: 80 }, (_, index) => index + 1);
    assert.deepEqual(
      reports.map(({ percent }) => percent),
      percents,
    );
    sent = 0;
    const said: string[] = [];
    const store = new ImageStore({
      ...{ cacheDir: directory, mirrors: readConfig(computeConfig, { SKERRY_HOME: directory }), signal },
      log: createLogger('test', 'info', { write: (line) => void said.push(line) }),
      files: { source: files, limitBytes: 8 * 1024 ** 2 },
    });
    await assert.rejects(store.ensure(name, report), isError('INVALID_IMAGE'));
    assert.equal(reports.at(-1)?.percent, 80);
    const fetching = said.filter((line) => line.includes('fetching the image'));
    assert.ok(fetching.length >= 8 && fetching.length < 20, `the log has ${fetching.length} lines of it`);
  }));

test('an image of the cache that is damaged is made again, and said; one that the node may not read stays', () =>
  inDirectory(async (cacheDir) => {
    await run('mke2fs', ['-q', '-t', 'ext4', join(cacheDir, 'ext.raw'), '3M']);
    const bytes = await readFile(join(cacheDir, 'ext.raw'));
    const source = {
      getMessage: () => Promise.reject(new AppError('MESSAGE_NOT_FOUND', 'none')),
      getFile: async () => new Response(bytes),
    } as unknown as FileSource;
    const said: string[] = [];
    const store = new ImageStore({
      ...{ cacheDir, mirrors: readConfig(computeConfig, { SKERRY_HOME: cacheDir }) },
      log: createLogger('test', 'error', { write: (line) => void said.push(line) }),
      signal: new AbortController().signal,
      files: { source, limitBytes: 4 * 1024 * 1024 },
    });
    const name = sha256Hex(bytes);
    const { directory } = await store.ensure(name, () => {});
    const manifest = join(directory, 'manifest.json');
    const damages = {
      ...{ cut: () => writeFile(manifest, '{"name":'), empty: () => writeFile(manifest, '{}') },
      ...{ unreadable: () => damageSector(manifest), partial: () => rm(join(directory, 'disk.qcow2')) },
    };
    for (const [what, damage] of Object.entries(damages)) {
      said.length = 0;
      const { buildId } = (await store.find(name))!;
      await damage();
      assert.equal(await store.find(name), undefined, what);
      const again = await store.ensure(name, () => {});
      assert.notEqual(again.buildId, buildId, what);
      assert.deepEqual(await store.find(name), again);
      assert.equal(said.length, 1, `${what}: ${said}`);
      assert.match(said[0]!, /damaged and is made again/);
    }
    await forbid(manifest);
    await assert.rejects(
      store.ensure(name, () => {}),
      { message: 'this node may not read its copy of the image' },
    );
    assert.ok((await readdir(directory)).includes('disk.qcow2'));
  }));
