import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { Signer } from '@skerry/client';
import { AppError } from '@skerry/protocol';
import { createTestCore, signers, type TestCore } from '../../testing/core.ts';

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

type Part = { name: string; value: string | Buffer; filename?: string; contentType?: string };

function encode(parts: readonly Part[]): { body: Buffer; headers: Record<string, string> } {
  const boundary = `b${randomBytes(8).toString('hex')}`;
  const chunks = parts.flatMap(({ name, value, filename, contentType }) => [
    `--${boundary}\r\ncontent-disposition: form-data; name="${name}"${filename ? `; filename="${filename}"` : ''}\r\n${contentType ? `content-type: ${contentType}\r\n` : ''}\r\n`,
    value,
    '\r\n',
  ]);
  const body = Buffer.concat([...chunks, `--${boundary}--\r\n`].map((chunk) => Buffer.from(chunk as string)));
  return { body, headers: { 'content-type': `multipart/form-data; boundary=${boundary}` } };
}

describe('storage', () => {
  let core: TestCore;
  const limit = 200_000;
  before(async () => {
    core = await createTestCore({ uploadLimitBytes: limit });
  });
  after(() => core[Symbol.asyncDispose]());

  const form = (bytes: Buffer, signer: Signer, extra: Part[] = []): Part[] => [
    { name: 'address', value: signer.address },
    { name: 'signature', value: signer.sign(sha256(bytes)) },
    ...extra,
    { name: 'file', value: bytes, filename: 'a.txt', contentType: 'text/html; charset=utf-8' },
  ];
  const upload = (parts: readonly Part[]) => {
    const { body, headers } = encode(parts);
    return core.post('/storage/store', body, headers);
  };
  /** Everything under the blob directory that is not a complete, named blob. */
  const leftovers = async () => (await readdir(join(core.filesDir, 'incoming'))).length;

  test('a file is kept under its hash, with its STORE message, and comes back byte for byte', async () => {
    const bytes = randomBytes(100_000);
    const hash = sha256(bytes);
    const parts = form(bytes, signers.alice, [
      { name: 'channel', value: 'files' },
      { name: 'tags', value: 'a, b' },
    ]);
    const stored = await upload(parts);
    assert.deepEqual([stored.status, stored.body.file_hash, stored.body.status], [200, hash, 'success']);
    for (const path of [`/storage/${hash}`, `/storage/raw/${hash}`]) {
      const { status, headers, body } = await core.get(path);
      assert.equal(status, 200);
      assert.deepEqual(body, bytes);
      assert.equal(headers.etag, `"${hash}"`);
      assert.equal(headers['x-content-type-options'], 'nosniff');
      assert.match(String(headers['content-security-policy']), /sandbox/);
    }
    assert.equal((await core.get(`/storage/${hash}`)).headers['content-type'], 'text/html');
    assert.equal(
      (await core.get(`/storage/raw/${hash}`)).headers['content-type'],
      'application/octet-stream',
    );
    const { body: message } = await core.get(`/messages/${stored.body.item_hash}`);
    assert.deepEqual(
      [message.type, message.channel, message.sender, message.signed_text],
      ['STORE', 'files', signers.alice.address, hash],
    );
    assert.deepEqual(message.content.tags, ['a', 'b']);
    const again = await upload([...parts].reverse());
    assert.deepEqual(
      again.body,
      stored.body,
      'the same file again, parts in another order: the same message',
    );
    assert.equal((await core.get('/messages?channels=files')).body.pagination.total, 1);
    assert.equal(await leftovers(), 0);
  });

  test('an empty file is a file', async () => {
    const { status, body } = await upload(form(Buffer.alloc(0), signers.alice));
    assert.deepEqual([status, body.file_hash], [200, sha256(Buffer.alloc(0))]);
  });

  test('forged, incomplete, oversized and malformed uploads are refused and leave nothing', async () => {
    const bytes = randomBytes(1000);
    const good = form(bytes, signers.alice);
    const without = (name: string) => good.filter((part) => part.name !== name);
    const cases: [readonly Part[], string][] = [
      [
        [...without('signature'), { name: 'signature', value: signers.bob.sign(sha256(bytes)) }],
        'INVALID_SIGNATURE',
      ],
      [[...without('signature'), { name: 'signature', value: 'zz' }], 'INVALID_SIGNATURE'],
      [[...without('address'), { name: 'address', value: '0x1' }], 'INVALID_ADDRESS'],
      [without('signature'), 'SIGNATURE_REQUIRED'],
      [without('address'), 'SIGNATURE_REQUIRED'],
      [without('file'), 'INVALID_PARAMETERS'],
      [[...good, good.at(-1)!], 'INVALID_PARAMETERS'],
      [[...good, { name: 'colour', value: 'red' }], 'UNKNOWN_FIELD'],
      [[...good, { name: 'address', value: signers.alice.address }], 'INVALID_PARAMETERS'],
      [[...good, { name: 'channel', value: 'x'.repeat(500) }], 'INVALID_PARAMETERS'],
      [form(randomBytes(limit + 1), signers.alice), 'FILE_TOO_LARGE'],
    ];
    for (const [parts, code] of cases) {
      const { body } = await upload(parts);
      assert.equal(body.code, code);
      assert.equal(await leftovers(), 0, code);
    }
    const json = await core.post('/storage/store', '{}');
    assert.deepEqual([json.status, json.body.code], [415, 'UNSUPPORTED_MEDIA_TYPE']);
    const cut = encode(good);
    const broken = await core.post(
      '/storage/store',
      cut.body.subarray(0, cut.body.length - 600),
      cut.headers,
    );
    assert.ok(broken.status >= 400 && broken.body.status === 'error');
    assert.equal(await leftovers(), 0);
    assert.equal((await core.get(`/storage/${sha256(bytes)}`)).body.code, 'FILE_NOT_FOUND');
    assert.equal((await core.get('/storage/xyz')).body.code, 'INVALID_HASH');
  });

  test('where the message is not kept the file cannot be read either', async () => {
    const bytes = randomBytes(500);
    // A tag that is too long passes the form and is refused with the message.
    const { status } = await upload(form(bytes, signers.alice, [{ name: 'tags', value: 'x'.repeat(500) }]));
    assert.equal(status, 400);
    assert.equal((await core.get(`/storage/${sha256(bytes)}`)).body.code, 'FILE_NOT_FOUND');
    // The database goes away between the blob and its message.
    const { pipeline } = core.rooms;
    const lost = randomBytes(500);
    const submit = pipeline.submit.bind(pipeline);
    pipeline.submit = () => Promise.reject(new AppError('DATABASE_UNAVAILABLE', 'gone'));
    assert.equal((await upload(form(lost, signers.alice))).status, 503);
    pipeline.submit = submit;
    assert.equal((await core.get(`/storage/${sha256(lost)}`)).body.code, 'FILE_NOT_FOUND');
    assert.equal((await upload(form(lost, signers.alice))).status, 200);
    assert.equal((await core.get(`/storage/${sha256(lost)}`)).status, 200);
  });
});
