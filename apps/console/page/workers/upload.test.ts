import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { createSigner, generatePrivateKey } from '@skerry/client';
import { AppError, sha256Hex } from '@skerry/protocol';
import { upload } from './upload.ts';

const own = createSigner(generatePrivateKey());
const file = new File(['kept already'], 'kept.txt');
const hash = sha256Hex('kept already');
const kept = { item_hash: 'b'.repeat(64), type: 'STORE', chain: own.chain, sender: own.address };

/** A core node that has the bytes, and messages of some owner that keep them. */
async function openCore(owner: string) {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url!, 'http://core');
    asked.push(`${request.method} ${pathname}`);
    response.setHeader('content-type', 'application/json');
    const isOwn = searchParams.get('owners') === owner && searchParams.get('contentHashes') === hash;
    const messages = isOwn ? [{ ...kept, signature: '0x', time: 1 }] : [];
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
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    ...{ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
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
