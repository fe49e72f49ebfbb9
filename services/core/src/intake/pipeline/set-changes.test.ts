import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bytesToHex, SYNC_ID_BYTES } from '@skerry/protocol';
import fc from 'fast-check';
import { decodeMoves, encodeMoves } from './set-changes.ts';

const key = fc.record(
  {
    time: fc.double({ noNaN: true, min: 0 }),
    id: fc.uint8Array({ minLength: SYNC_ID_BYTES, maxLength: SYNC_ID_BYTES }),
  },
  { noNullPrototype: true },
);
const move = fc
  .record({ to: key, from: fc.option(key), cid: fc.option(fc.string({ minLength: 1, maxLength: 60 })) })
  .map(({ to, from, cid }) => ({
    itemHash: cid === null ? bytesToHex(to.id.subarray(0, 32)) : `Qm${cid}`,
    from,
    to,
  }));

const gone = key.map((from) => ({ itemHash: bytesToHex(from.id.subarray(0, 32)), from, to: null }));

test('moves are read as they were written', () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(move, gone), { maxLength: 20 }), (moves) => {
      assert.deepEqual(decodeMoves(encodeMoves(moves)), moves);
    }),
  );
});
