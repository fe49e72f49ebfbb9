import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { keccak256 as keccakOfViem } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { createWallet } from './transaction.ts';

const KEY = `0x${'a7'.repeat(32)}` as const;
const wei = fc.bigInt({ min: 0n, max: 2n ** 90n });
const hex = fc
  .uint8Array({ maxLength: 300 })
  .map((bytes) => `0x${Buffer.from(bytes).toString('hex')}` as const);

test('a transaction is signed byte for byte as another implementation signs it', async () => {
  const [wallet, account] = [createWallet(KEY), privateKeyToAccount(KEY)];
  assert.equal(wallet.address, account.address.toLowerCase());
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        chainId: fc.integer({ min: 1, max: 2 ** 40 }),
        nonce: fc.nat(),
        maxPriorityFeePerGas: wei,
        gas: fc.bigInt({ min: 21_000n, max: 2n ** 40n }),
        to: fc.option(
          fc
            .uint8Array({ minLength: 20, maxLength: 20 })
            .map((bytes) => `0x${Buffer.from(bytes).toString('hex')}` as const),
        ),
        value: wei,
        data: hex,
      }),
      async (fields) => {
        const transaction = { ...fields, maxFeePerGas: fields.maxPriorityFeePerGas + 1n };
        const expected = await account.signTransaction({
          ...transaction,
          to: fields.to ?? undefined,
          type: 'eip1559',
        });
        const { raw, hash } = wallet.sign(transaction);
        assert.equal(raw, expected);
        assert.equal(hash, keccakOfViem(expected));
      },
    ),
    { numRuns: 60 },
  );
});
