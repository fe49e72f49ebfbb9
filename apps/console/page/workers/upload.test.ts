import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createSigner, generatePrivateKey, signMessage } from '@skerry/client';
import { serving } from '@skerry/kit/testing/serving';
import { AppError, sha256Hex } from '@skerry/protocol';
import { upload } from './upload.ts';

const own = createSigner(generatePrivateKey());
const file = new File(['kept already'], 'kept.txt');
const hash = sha256Hex('kept already');

/** As a list has the message by which its owner keeps a file. */
function keeping(item_hash: string) {
  const content = { item_type: 'storage', item_hash, size: file.size };
  const { body, itemHash } = signMessage({ type: 'STORE', content }, own);
  const told = { item_hash: itemHash, type: 'STORE', chain: own.chain, sender: own.address };
  return { ...told, item_type: 'inline', shared: body, signature: '0x', time: 1 };
}
const kept = keeping(hash);

/** A core node that has the bytes, and a message that keeps them, as it says, for some owner. */
async function openCore(owner: string, message = kept) {
  const asked: string[] = [];
  const core = await serving((request, response) => {
    const { pathname, searchParams } = new URL(request.url!, 'http://core');
    asked.push(`${request.method} ${pathname}`);
    response.setHeader('content-type', 'application/json');
    const isOwn = searchParams.get('owners') === owner && searchParams.get('contentHashes') === hash;
    const messages = isOwn ? [message] : [];
    const answers: Readonly<Record<string, object>> = {
      [`/api/v0/storage/metadata/${hash}`]: {
        file_hash: hash,
        type: 'file',
        size: file.size,
        download_url: '/',
      },
      '/api/v0/messages.json': {
        ...{ messages, pagination_per_page: 1, pagination_page: 1, pagination_total: messages.length },
        pagination_item: 'messages',
      },
    };
    const answer = answers[pathname];
    if (!answer) response.statusCode = 404;
    response.end(JSON.stringify(answer ?? { status: 'error', code: 'ROUTE_NOT_FOUND', error: 'none' }));
  });
  return { ...core, asked };
}

const refusing = {
  ...{ chain: own.chain, address: own.address },
  sign: () => Promise.reject(new AppError('SIGNATURE_REQUIRED', 'its owner does not want to')),
};

test("a file that one of its owner's messages keeps is not kept, and not charged, a second time", async () => {
  await using core = await openCore(own.address);
  const stored = await upload(core.url, file, refusing, () => {});
  assert.deepEqual(stored, { itemHash: kept.item_hash, fileHash: hash, wasThere: true, hadBytes: file.size });
  assert.deepEqual(
    core.asked.filter((one) => !one.startsWith('GET')),
    [],
  );
});

test('a file that only others keep gets a message of its own', async () => {
  await using core = await openCore(`0x${'1'.repeat(40)}`);
  await assert.rejects(
    upload(core.url, file, refusing, () => {}),
    { code: 'SIGNATURE_REQUIRED' },
  );
});

test('a message that a node only says to keep a file is not given back as one that does', async () => {
  for (const message of [keeping(sha256Hex('other bytes')), { ...kept, item_hash: 'b'.repeat(64) }]) {
    await using core = await openCore(own.address, message);
    await assert.rejects(
      upload(core.url, file, refusing, () => {}),
      { code: 'HASH_MISMATCH' },
    );
  }
});
