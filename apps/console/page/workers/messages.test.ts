import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createSigner, generatePrivateKey } from '@skerry/client';
import { itemHashOf, sha256Hex } from '@skerry/protocol';
import { judgeMessages } from './messages.ts';

test('an upload in a list is signed as it is listed, unless it names another file', async () => {
  const { address, sign } = createSigner(generatePrivateKey());
  const hash = sha256Hex('the bytes of a file');
  const told = { address, file_hash: hash, size: 19, signature: sign(hash), channel: 'files', time: 5 };
  const row = {
    ...{ item_hash: itemHashOf('ETH', address, hash), sender: address, signature: told.signature },
    ...{ item_type: 'inline' as const, shared: JSON.stringify({ upload: told, noted_ms: 0 }) },
  };
  const listed = (item_hash: string) => {
    const content = { address, time: 5, item_type: 'storage', item_hash, size: 19 };
    return { ...row, content, item_content: JSON.stringify(content) };
  };
  const judged = await judgeMessages('http://127.0.0.1:9', [listed(hash), listed('a'.repeat(64))]);
  assert.deepEqual(
    judged.map(({ failure }) => failure?.code),
    [undefined, 'HASH_MISMATCH'],
  );
});
