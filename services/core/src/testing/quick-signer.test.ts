import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createSigner } from '@skerry/client';
import { anyCharacter } from '@skerry/protocol/testing/characters';
import fc from 'fast-check';
import { createQuickSigner } from './quick-signer.ts';

test('the quick signer of tests gives the bytes that the client’s gives', () => {
  const key = fc
    .uint8Array({ minLength: 31, maxLength: 31 })
    .map((bytes) => `0x01${Buffer.from(bytes).toString('hex')}`);
  fc.assert(
    fc.property(key, fc.string({ unit: anyCharacter }), (key, text) => {
      const [quick, slow] = [createQuickSigner(key), createSigner(key)];
      assert.deepEqual([quick.chain, quick.address], [slow.chain, slow.address]);
      assert.equal(quick.sign(text), slow.sign(text));
    }),
  );
});
