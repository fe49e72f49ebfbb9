import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { test } from 'node:test';
import { BOUNDLESS } from '@skerry/database';
import { createLogger } from '@skerry/kit';
import fc from 'fast-check';
import { openBlobStore, parseS3Settings } from '../choose-store.ts';
import { describeBlobStore, hashOf, keepBlob } from '../testing/blob-suite.ts';
import { startProxy } from '../testing/s3-proxy.ts';
import { startTestS3 } from '../testing/s3-server.ts';
import { createS3BlobStore, parseListing } from './store.ts';

const createSpool = () => mkdtemp(join(tmpdir(), 'skerry-spool-'));

describeBlobStore('an object store (a real S3-compatible server)', async () => {
  await using stack = new AsyncDisposableStack();
  const { settings } = stack.use(await startTestS3());
  const spoolDirectory = await createSpool();
  stack.defer(() => rm(spoolDirectory, { recursive: true, force: true }));
  const store = await createS3BlobStore(settings, spoolDirectory);
  const owned = stack.move();
  return { store, spoolDirectory, [Symbol.asyncDispose]: () => owned.disposeAsync() };
});

test('a wrong key, a wrong secret and a bucket that is not there are refused at the start', async (t) => {
  await using server = await startTestS3();
  const spool = await createSpool();
  t.after(() => rm(spool, { recursive: true, force: true }));
  for (const wrong of [{ accessKeyId: 'x' }, { secretAccessKey: 'x' }, { bucket: 'elsewhere' }]) {
    await assert.rejects(createS3BlobStore({ ...server.settings, ...wrong }, spool), {
      code: 'INVALID_CONFIG',
    });
  }
});

test('a clock that is wrong is said, and is no wrong setting: it is set while the node tries again', async (t) => {
  await using server = await startTestS3();
  const spool = await createSpool();
  t.after(() => rm(spool, { recursive: true, force: true }));
  // As S3 answers a request that is dated too far off: this server takes any date.
  const refusals: number[] = [];
  using proxy = await startProxy(server.settings.endpoint, () => refusals.shift());
  const open = () => createS3BlobStore({ ...server.settings, endpoint: proxy.endpoint }, spool);
  for (const [hours, words] of [
    [1, 'is 60 minutes ahead of'],
    [-2, 'is 120 minutes behind'],
  ] as const) {
    refusals.push(403);
    t.mock.timers.enable({ apis: ['Date'], now: Date.now() + hours * 3_600_000 });
    await assert.rejects(open(), { code: 'STORAGE_UNAVAILABLE', message: new RegExp(`clock ${words} `) });
    t.mock.timers.reset();
  }
  refusals.push(403);
  await assert.rejects(open(), { code: 'INVALID_CONFIG', message: /the access key must be allowed/ });
  await open();
});

test('two stores with buckets of one name are told apart, and one is the same for all who use it', async () => {
  await using stack = new AsyncDisposableStack();
  const [one, other] = [stack.use(await startTestS3()), stack.use(await startTestS3())];
  assert.equal(one.settings.bucket, other.settings.bucket);
  const open = async ({ settings }: typeof one) => {
    const directory = await createSpool();
    for (const path of [directory, `${directory}.lock`])
      stack.defer(() => rm(path, { recursive: true, force: true }));
    const { endpoint, bucket, region, accessKeyId, secretAccessKey } = settings;
    return openBlobStore(
      {
        ...{ s3Endpoint: endpoint, s3Bucket: bucket, s3Region: region, s3PublicEndpoint: undefined },
        ...{ s3AccessKeyId: accessKeyId, s3SecretAccessKey: secretAccessKey, uploadLimitBytes: 1_000 },
      },
      { directory, reserve: BOUNDLESS, log: createLogger('test', 'silent') },
    );
  };
  const first = await open(one);
  assert.equal((await open(one)).id, first.id);
  assert.notEqual((await open(other)).id, first.id);
  assert.deepEqual(await first.blobs.list(undefined, 10), [], 'what tells it apart is no file');
});

test('what fails for a moment is tried again; what goes on failing is said, and leaves nothing', async (t) => {
  await using server = await startTestS3();
  const spool = await createSpool();
  t.after(() => rm(spool, { recursive: true, force: true }));
  const troubles: (number | 'hang up')[] = [];
  using proxy = await startProxy(server.settings.endpoint, () => troubles.shift());
  const store = await createS3BlobStore({ ...server.settings, endpoint: proxy.endpoint }, spool);
  const bytes = Buffer.alloc(1_000_000, 7);
  troubles.push(503, 'hang up', 500);
  assert.equal(await keepBlob(store, bytes), hashOf(bytes));
  troubles.push('hang up', 429);
  assert.deepEqual(await buffer(await store.read(hashOf(bytes))), bytes);
  troubles.push(...Array<503>(4).fill(503));
  await assert.rejects(keepBlob(store, Buffer.from('other')), { code: 'STORAGE_UNAVAILABLE' });
  troubles.push(403);
  await assert.rejects(store.find(hashOf(bytes)), { code: 'STORAGE_UNAVAILABLE' });
  troubles.push(507);
  const refused = await store.receive(Readable.from([Buffer.from('other')]), 10);
  await assert.rejects(refused.keep(), { code: 'STORAGE_FULL' });
  await refused.keep();
  assert.ok(await store.find(refused.hash), 'kept at the second try');
  await refused.discard();
  troubles.push(403);
  await assert.rejects(store.list(undefined, 10), { code: 'STORAGE_UNAVAILABLE' });
  troubles.push(403);
  await assert.rejects(store.remove(refused.hash), { code: 'STORAGE_UNAVAILABLE' });
  // The one whose four tries failed is still in the spool: `keepBlob` did not discard it.
  assert.equal((await readdir(spool)).length, 1);
  await createS3BlobStore(server.settings, spool);
  assert.deepEqual(await readdir(spool), []);
});

test('a link gives the bytes to anyone who has it, also in parts, and only as it is', async (t) => {
  await using server = await startTestS3();
  const spool = await createSpool();
  t.after(() => rm(spool, { recursive: true, force: true }));
  assert.equal((await createS3BlobStore(server.settings, spool)).linkTo, undefined);
  const { endpoint } = server.settings;
  const store = await createS3BlobStore({ ...server.settings, publicEndpoint: endpoint }, spool);
  const hash = await keepBlob(store, Buffer.from('the bytes'));
  const link = store.linkTo!(hash, {
    contentType: 'application/octet-stream',
    contentDisposition: 'attachment',
    cacheControl: 'public, max-age=31536000, immutable',
  });
  const whole = await fetch(link);
  assert.deepEqual([whole.status, await whole.text()], [200, 'the bytes']);
  assert.equal(whole.headers.get('content-type'), 'application/octet-stream');
  assert.equal(whole.headers.get('content-disposition'), 'attachment');
  assert.equal(whole.headers.get('cache-control'), 'public, max-age=31536000, immutable');
  const part = await fetch(link, { headers: { range: 'bytes=4-' } });
  assert.deepEqual([part.status, await part.text()], [206, 'bytes']);
  const url = new URL(link);
  assert.equal(url.searchParams.get('X-Amz-Expires'), '600');
  const other = await keepBlob(store, Buffer.from('other bytes'));
  for (const forged of [
    link.replace(hash, other),
    link.replace('X-Amz-Expires=600', 'X-Amz-Expires=6000'),
    link.replace('octet-stream', 'xml'),
  ]) {
    assert.notEqual(forged, link);
    const answer = await fetch(forged);
    await answer.body?.cancel();
    assert.equal(answer.status, 403, forged);
  }
});

test('a listing of strangers is read without failing; only what has our form is taken', () => {
  const hash = 'ab'.repeat(32);
  const entry = (key: string, time = '2026-01-02T03:04:05.000Z', size = '3') =>
    `<Contents><Key>${key}</Key><LastModified>${time}</LastModified><ETag>"x"</ETag><Size>${size}</Size></Contents>`;
  const listing = `<ListBucketResult>${[entry('note.txt'), entry(hash), entry(hash, 'never'), entry(hash, undefined, ''), entry(hash, undefined, '-')].join('')}</ListBucketResult>`;
  assert.deepEqual(parseListing(listing), [
    { hash, sizeBytes: 3, keptAtMs: Date.parse('2026-01-02T03:04:05.000Z') },
  ]);
  const piece = fc.constantFrom('<Contents>', '</Contents>', '<Key>', '</Key>', '<Size>', hash, '<', 'x');
  fc.assert(
    fc.property(fc.array(fc.oneof(piece, fc.string())), (pieces) => {
      for (const blob of parseListing(pieces.join(''))) assert.match(blob.hash, /^[0-9a-f]{64}$/);
    }),
  );
});

test('settings of an object store: all, none, or what is missing or wrong', () => {
  const none = {
    s3Endpoint: undefined,
    s3Bucket: undefined,
    s3Region: 'us-east-1',
    s3AccessKeyId: undefined,
    s3SecretAccessKey: undefined,
    s3PublicEndpoint: undefined,
    uploadLimitBytes: 10,
  };
  const all = {
    ...none,
    s3Endpoint: 'https://s3.example:9000',
    s3Bucket: 'blobs',
    s3AccessKeyId: 'id',
    s3SecretAccessKey: 'hush',
  };
  assert.equal(parseS3Settings(none), undefined);
  assert.deepEqual(parseS3Settings(all), {
    endpoint: 'https://s3.example:9000',
    bucket: 'blobs',
    region: 'us-east-1',
    accessKeyId: 'id',
    secretAccessKey: 'hush',
  });
  assert.throws(() => parseS3Settings({ ...none, s3PublicEndpoint: 'https://s3.example' }), /also needs/);
  for (const [wrong, says] of [
    [{ s3SecretAccessKey: undefined }, /SECRET_ACCESS_KEY/],
    [{ s3Bucket: 'a/b' }, /BUCKET/],
    [{ uploadLimitBytes: 6 * 1024 ** 3 }, /UPLOAD_LIMIT_BYTES/],
  ] as const) {
    assert.throws(
      () => parseS3Settings({ ...all, ...wrong }),
      (error: Error) => says.test(error.message) && !error.message.includes('hush'),
    );
  }
});
