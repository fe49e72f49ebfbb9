import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseDeclaration } from '../abi/declaration.ts';
import { OTHER, TOKEN, TRANSFER, TRANSFER_TOPIC, word } from '../testing/index.ts';
import { keyOfClaims, readRange } from './range.ts';

test('contracts to which two databases gave the same numbers are told apart in one process', () => {
  const read = (wanted: string, sender: string): number => {
    const events = [{ id: 1, definition: parseDeclaration(TRANSFER) }];
    const claims = [{ contractId: 1, address: wanted, topics: [TRANSFER_TOPIC], events, fromBlock: 0 }];
    const log = {
      ...{ address: sender, topics: [TRANSFER_TOPIC, word(1), word(2)], data: word(3) },
      ...{ blockNumber: '0x1', blockHash: word(4), blockTimestamp: '0x1', logIndex: '0x0' },
      transactionHash: word(5),
    };
    const body = Buffer.from(JSON.stringify([{ id: 0, result: [log] }]));
    const task = { body, from: 1, to: 1, headers: [], known: [], blooms: false };
    const result = readRange({ ...task, claims, claimsKey: keyOfClaims(claims) });
    assert.ok(result.ok, JSON.stringify(result));
    return result.batch.rows;
  };
  assert.deepEqual([read(TOKEN, TOKEN), read(OTHER, OTHER), read(OTHER, TOKEN)], [1, 1, 0]);
});
