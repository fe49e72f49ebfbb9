import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import fc from 'fast-check';
import { createS3BlobStore } from '../../store/files/s3/store.ts';
import { startTestS3 } from '../../store/files/testing/s3-server.ts';
import { createTestCore, signers, type TestCore } from '../../testing/core.ts';
import { encodeAsJson, JSON_FILE_BYTES_MAX, jsonLength } from './storage-json.ts';
import { LINKED_BYTES_MIN } from './storage-read.ts';

const bytes = randomBytes(700_001);
const hashOf = (content: Buffer) => createHash('sha256').update(content).digest('hex');
const hash = hashOf(bytes);

async function store(core: TestCore, content: Buffer, contentType: string): Promise<string> {
  const blob = await core.rooms.files.receive(Readable.from([content]));
  const { address } = signers.alice;
  const signature = signers.alice.sign(blob.hash);
  await core.rooms.files.store(blob, contentType, { address, signature, channel: 'files', tags: [] });
  return blob.hash;
}

/** @param isPublic whether those who download reach the object store */
async function createS3Core(isPublic = false): Promise<TestCore> {
  await using stack = new AsyncDisposableStack();
  const server = stack.use(await startTestS3());
  const settings = {
    ...server.settings,
    ...(isPublic ? { publicEndpoint: server.settings.endpoint } : {}),
  };
  const spool = await mkdtemp(join(tmpdir(), 'skerry-spool-'));
  stack.defer(() => rm(spool, { recursive: true, force: true }));
  const blobs = await createS3BlobStore(settings, spool);
  const core = await createTestCore({ blobs, ...(isPublic ? { uploadLimitBytes: LINKED_BYTES_MIN } : {}) });
  stack.use(core);
  const owned = stack.move();
  return { ...core, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

for (const [name, create] of [
  ['a directory', () => createTestCore()],
  ['an object store', () => createS3Core()],
] as const) {
  describe(`reading files of ${name}`, () => {
    let core: TestCore;
    before(async () => {
      core = await create();
      await store(core, bytes, 'text/plain');
    });
    after(() => core[Symbol.asyncDispose]());

    test('whole, in parts, not at all: status, headers and bytes; HEAD says the same', async () => {
      for (const path of [`/storage/${hash}`, `/storage/raw/${hash}`]) {
        const whole = await core.get(path);
        assert.deepEqual([whole.status, whole.body], [200, bytes]);
        const expected = {
          'content-type': path.includes('raw') ? 'application/octet-stream' : 'text/plain',
          'content-length': '700001',
          'accept-ranges': 'bytes',
          etag: `"${hash}"`,
          'cache-control': 'public, max-age=31536000, immutable',
          'x-content-type-options': 'nosniff',
          'content-security-policy': "default-src 'none'; sandbox",
          'content-disposition': path.includes('raw') ? 'attachment' : 'inline',
        };
        const head = await core.get(path, { range: 'bytes=0-5' }, 'HEAD');
        assert.deepEqual([head.status, head.body.length], [200, 0]);
        for (const [header, value] of Object.entries(expected)) {
          assert.equal(String(whole.headers[header]), value, header);
          assert.equal(String(head.headers[header]), value, `HEAD ${header}`);
        }
        for (const [range, first, last] of [
          ['bytes=1-5', 1, 5],
          ['bytes=700000-', 700_000, 700_000],
          ['bytes=-600000', 100_001, 700_000],
        ] as const) {
          const part = await core.get(path, { range, 'if-range': `"${hash}"` });
          assert.deepEqual([part.status, part.body], [206, bytes.subarray(first, last + 1)]);
          assert.equal(part.headers['content-range'], `bytes ${first}-${last}/700001`);
          assert.equal(Number(part.headers['content-length']), last - first + 1);
          assert.equal(part.headers.etag, `"${hash}"`);
        }
        for (const ignored of ['bytes=0-1,4-5', 'pages=1-2', 'bytes=9-1']) {
          const answer = await core.get(path, { range: ignored });
          assert.deepEqual([answer.status, answer.body.length], [200, bytes.length], ignored);
        }
        assert.equal((await core.get(path, { range: 'bytes=0-1', 'if-range': '"x"' })).status, 200);
        const beyond = await core.get(path, { range: 'bytes=700001-' });
        assert.deepEqual(
          [beyond.status, beyond.body.code, beyond.headers['content-range'], beyond.headers['cache-control']],
          [416, 'RANGE_NOT_SATISFIABLE', 'bytes */700001', undefined],
        );
        for (const method of ['GET', 'HEAD'] as const) {
          const same = await core.get(path, { 'if-none-match': `"${hash}"` }, method);
          assert.deepEqual([same.status, same.body.length, same.headers.etag], [304, 0, `"${hash}"`]);
          assert.equal(same.headers['cache-control'], expected['cache-control']);
        }
        assert.equal((await core.get(path, { 'if-match': '"x"' })).body.code, 'PRECONDITION_FAILED');
      }
    });

    test('as JSON where that is asked for first', async () => {
      for (const accept of ['application/json', 'application/json, text/plain, */*']) {
        const { status, headers, body } = await core.get(`/storage/${hash}`, { accept });
        assert.deepEqual(
          [status, body],
          [200, { status: 'success', hash, engine: 'storage', content: bytes.toString('base64') }],
        );
        assert.deepEqual([headers.vary, headers.etag], ['accept', `"${hash}.json"`]);
        const head = await core.get(`/storage/${hash}`, { accept }, 'HEAD');
        assert.equal(head.headers['content-length'], headers['content-length']);
        const same = await core.get(`/storage/${hash}`, { accept, 'if-none-match': `"${hash}.json"` });
        assert.equal(same.status, 304);
      }
      for (const accept of ['*/*', 'text/html, application/json'])
        assert.deepEqual((await core.get(`/storage/${hash}`, { accept })).body, bytes);
      assert.deepEqual((await core.get(`/storage/raw/${hash}`, { accept: 'application/json' })).body, bytes);
    });

    test('metadata, limits, and what is not there', async () => {
      const { body } = await core.get(`/storage/metadata/${hash.toUpperCase()}`);
      assert.deepEqual(body, {
        file_hash: hash,
        type: 'file',
        size: 700_001,
        download_url: `/api/v0/storage/raw/${hash}`,
      });
      const limits = await core.get('/storage/limits.json');
      assert.deepEqual(limits.body.storage, {
        max_file_size: 1024 * 1024,
        max_unauthenticated_upload_file_size: 1024 * 1024,
      });
      for (const path of ['', 'raw/', 'metadata/']) {
        assert.equal((await core.get(`/storage/${path}${'0'.repeat(64)}`)).body.code, 'FILE_NOT_FOUND');
        assert.equal((await core.get(`/storage/${path}xyz`)).body.code, 'INVALID_HASH');
        assert.equal((await core.get(`/storage/${path}${'0'.repeat(64)}`, {}, 'HEAD')).status, 404);
      }
      await core.rooms.db
        .insertInto('files')
        .values({ hash: 'ab'.repeat(32), size_bytes: 1, content_type: 'x/y' })
        .execute();
      assert.equal(
        (await core.get(`/storage/${'ab'.repeat(32)}`)).body.code,
        'FILE_NOT_FOUND',
        'known, but gone',
      );
    });

    test('pages and drawings of strangers are saved, never shown', async () => {
      for (const type of ['text/html', 'image/svg+xml', 'application/xhtml+xml']) {
        const page = await store(core, Buffer.from(`<script>alert("${type}")</script>`), type);
        const { headers } = await core.get(`/storage/${page}`);
        assert.deepEqual(
          [headers['content-type'], headers['content-disposition'], headers['content-security-policy']],
          [type, 'attachment', "default-src 'none'; sandbox"],
        );
      }
    });

    test('a JSON body is kept as it came; it is readable at once', async () => {
      const text = '{ "b" : 1.0, "a":"é"}\n';
      const { status, body } = await core.post('/storage/add_json', text);
      assert.deepEqual([status, body], [200, { status: 'success', hash: hashOf(Buffer.from(text)) }]);
      const read = await core.get(`/storage/raw/${body.hash}`);
      assert.equal(read.body.toString(), text);
      assert.deepEqual((await core.post('/storage/add_json', text)).body, body);
      for (const wrong of ['', '{', 'undefined', Buffer.from([0x22, 0xff, 0x22])])
        assert.equal((await core.post('/storage/add_json', wrong)).body.code, 'INVALID_JSON');
      const tooLarge = await core.post('/storage/add_json', `"${'x'.repeat(4 * 1024 * 1024)}"`);
      assert.deepEqual([tooLarge.status, tooLarge.body.code], [413, 'BODY_TOO_LARGE']);
    });
  });
}

test('base64 of any pieces is the base64 of the whole, as long as was said', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.uint8Array({ maxLength: 7 })), async (pieces) => {
      const whole = Buffer.concat(pieces);
      const source = Readable.from(
        pieces.map((piece) => Buffer.from(piece)).filter((piece) => piece.length > 0),
      );
      const json = (await buffer(encodeAsJson(hash, source))).toString();
      assert.equal(json.length, jsonLength(hash, whole.length));
      assert.deepEqual(JSON.parse(json), {
        status: 'success',
        hash,
        engine: 'storage',
        content: whole.toString('base64'),
      });
    }),
  );
});

test('a file that is too large for JSON says where it is to be had', async (t) => {
  const core = await createTestCore({ uploadLimitBytes: JSON_FILE_BYTES_MAX + 1 });
  t.after(() => core[Symbol.asyncDispose]());
  const large = await store(core, Buffer.alloc(JSON_FILE_BYTES_MAX + 1), 'x/y');
  const { status, body, headers } = await core.get(`/storage/${large}`, { accept: 'application/json' });
  assert.deepEqual([status, body.code, headers.etag], [413, 'FILE_TOO_LARGE', undefined]);
  assert.match(body.error, /storage\/raw/);
});

test('a large file is fetched from an object store that callers reach; whatever hangs on our tag, and what peers ask, is answered here', async () => {
  await using core = await createS3Core(true);
  const large = randomBytes(LINKED_BYTES_MIN);
  const [largeHash, smallHash] = [
    await store(core, large, 'text/html'),
    await store(core, large.subarray(1), 'text/html'),
  ];
  const at = core.get;
  const path = `/storage/raw/${largeHash}`;
  const sent = await at(path);
  assert.deepEqual([sent.status, sent.headers['cache-control']], [307, 'no-store']);
  const whole = await fetch(String(sent.headers.location));
  assert.equal(hashOf(Buffer.from(await whole.arrayBuffer())), largeHash);
  // A stranger's page is not run as one of the object store.
  assert.equal(whole.headers.get('content-type'), 'application/octet-stream');
  assert.equal(whole.headers.get('content-disposition'), 'attachment');
  const range = { range: 'bytes=10-19' };
  const part = await fetch(String((await at(path, range)).headers.location), { headers: range });
  assert.deepEqual([part.status, Buffer.from(await part.arrayBuffer())], [206, large.subarray(10, 20)]);
  assert.equal((await at(path, {}, 'HEAD')).status, 200);
  assert.equal((await at(path, { 'if-none-match': `"${largeHash}"` })).status, 304);
  assert.equal((await at(path, { ...range, 'if-range': `"${largeHash}"` })).status, 206);
  assert.equal((await at(`/storage/${largeHash}`)).status, 200);
  assert.equal((await at(`/storage/raw/${smallHash}`)).status, 200);
});
