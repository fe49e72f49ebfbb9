import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseDeclaration } from '../abi/declaration.ts';
import type { Header } from '../chain/shape.ts';
import { OTHER, TOKEN, TRANSFER, TRANSFER_TOPIC, word } from '../testing/index.ts';
import { keyOfClaims, readRange } from './range.ts';

const EVENTS = [{ id: 1, definition: parseDeclaration(TRANSFER) }];
const log = {
  ...{ address: TOKEN, topics: [TRANSFER_TOPIC, word(1), word(2)], data: word(3) },
  ...{ blockNumber: '0x1', blockHash: word(4), blockTimestamp: '0x1', logIndex: '0x0' },
  transactionHash: word(5),
};

function read(logs: readonly Record<string, unknown>[], wanted = TOKEN, known: readonly Header[] = []) {
  const claims = [{ contractId: 1, address: wanted, topics: [TRANSFER_TOPIC], events: EVENTS, fromBlock: 0 }];
  const body = Buffer.from(JSON.stringify([{ id: 0, result: logs }]));
  const task = { body, from: 1, to: 1, headers: [], known, blooms: false };
  return readRange({ ...task, claims, claimsKey: keyOfClaims(claims) });
}

test('contracts to which two databases gave the same numbers are told apart in one process', () => {
  const rows = (wanted: string, address: string): number => {
    const result = read([{ ...log, address }], wanted);
    assert.ok(result.ok, JSON.stringify(result));
    return result.batch.rows;
  };
  assert.deepEqual([rows(TOKEN, TOKEN), rows(OTHER, OTHER), rows(OTHER, TOKEN)], [1, 1, 0]);
});

test('a log is of the time of its block: another one is a lie, none or zero is asked for', () => {
  const header = { number: 1, hash: word(4), parentHash: word(6), timestamp: 1_700_000_000, bloom: '0x' };
  const at = (time: unknown, more = {}) => ({ ...log, blockTimestamp: time, ...more });
  const told = `0x${header.timestamp.toString(16)}`;
  const kindOf = (...args: Parameters<typeof read>) => {
    const result = read(...args);
    if (!result.ok) return result.failure.kind;
    return result.missing.length > 0 ? 'missing' : String(result.batch.spans[0]?.fromTimestamp);
  };
  for (const time of [told, undefined, null, '0x0'])
    assert.equal(kindOf([at(time)], TOKEN, [header]), String(header.timestamp));
  assert.equal(kindOf([at('0xffff')], TOKEN, [header]), 'lie');
  assert.equal(kindOf([at(told)]), String(header.timestamp));
  assert.equal(kindOf([at('0x0')]), 'missing');
  assert.equal(kindOf([at(told), at('0xffff', { logIndex: '0x1' })]), 'lie');
});
