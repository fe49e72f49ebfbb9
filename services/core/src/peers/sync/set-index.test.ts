import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  answerRanges,
  answersQuestion,
  compareKeys,
  continueRanges,
  decodeAnswer,
  decodeQuestion,
  END,
  encodeRanges,
  openQuestion,
  QUESTION_RANGES_MAX,
  type Range,
  START,
  type SyncKey,
  shortKeyOf,
  syncKeyOf,
  textOfShortKey,
} from '@skerry/protocol';
import fc from 'fast-check';
import { SetIndex } from './set-index.ts';

/** An id as hashes are, but for its beginning, which many share. */
const idOf = (seed: number, first: number) => {
  const id = new Uint8Array(36);
  const view = new DataView(id.buffer);
  for (let word = 0; word < 9; word++)
    view.setUint32(
      word * 4,
      Math.imul(Math.imul(seed + 1, 2_654_435_761) ^ (word * 0x9e3779b1), 0x85ebca6b + 2 * word),
    );
  id[0] = first;
  return id;
};

/** Few times and few first bytes, so that keys crowd. */
const keys = fc
  .uniqueArray(fc.nat(100_000), { maxLength: 1_500, size: 'max' })
  .map((seeds) => seeds.map((seed) => ({ time: [0, 1, 1.5, 2][seed % 4]!, id: idOf(seed, seed % 3) })));

const textOf = (key: SyncKey) => textOfShortKey(shortKeyOf(key));

/** Runs a session over the encoded bodies, as between two nodes. */
function reconcile(own: SetIndex, other: SetIndex) {
  let open: readonly Range[] = openQuestion(own);
  const [lacks, has]: [string[], string[]] = [[], []];
  let bytes = 0;
  let rounds = 0;
  for (; open.length > 0; rounds++) {
    assert.ok(rounds < 1_000, 'the session ends');
    const asked = open.slice(0, QUESTION_RANGES_MAX);
    const question = encodeRanges(asked);
    const answer = encodeRanges(answerRanges(other, decodeQuestion(question)));
    assert.ok(answersQuestion(asked, decodeAnswer(answer)));
    bytes += question.length + answer.length;
    const next = continueRanges(own, decodeAnswer(answer));
    assert.equal(next.hasCount, next.has.length);
    lacks.push(...next.lacks.map(textOfShortKey));
    has.push(...next.has.map(textOfShortKey));
    open = [...next.open, ...open.slice(QUESTION_RANGES_MAX)];
  }
  return { lacks: lacks.sort(), has: has.sort(), bytes, rounds };
}

describe('the index of messages', () => {
  test('is what its keys make it, however it grew', () => {
    fc.assert(
      fc.property(keys, fc.integer({ min: 0, max: 1_500 }), (all, cut) => {
        const built = SetIndex.of(all);
        const grown = new SetIndex();
        for (const key of all.slice(cut)) grown.add(key);
        for (const key of all) grown.add(key);
        for (const key of all.slice(0, cut)) assert.ok(grown.remove(key));
        for (const key of all.slice(0, cut)) assert.ok(grown.add(key));
        const sorted = all.toSorted(compareKeys);
        assert.equal(grown.size, all.length);
        for (const [rank, key] of sorted.entries()) {
          assert.equal(textOf(grown.keyAt(rank)), textOf(key));
          assert.equal(grown.rank({ time: key.time, prefix: key.id }), rank);
          assert.equal(textOf(grown.find(shortKeyOf(key))!), textOf(key));
        }
        assert.deepEqual([grown.rank(START), grown.rank(END)], [0, all.length]);
        const [from, to] = [cut % (all.length + 1), all.length].sort((a, b) => a - b) as [number, number];
        const expected = SetIndex.of(sorted.slice(from, to)).fingerprint(0, to - from);
        assert.deepEqual(grown.fingerprint(from, to), expected);
        assert.deepEqual(built.fingerprint(from, to), expected);
      }),
      { numRuns: 15, endOnFailure: true },
    );
  });

  test('two nodes find exactly what each lacks', () => {
    fc.assert(
      fc.property(keys, fc.integer(), (all, salt) => {
        const side = all.map((_, at) => (Math.imul(at + 1, salt | 1) >>> 5) % 4);
        const mine = all.filter((_, at) => side[at] !== 0);
        const theirs = all.filter((_, at) => side[at] !== 1);
        const result = reconcile(SetIndex.of(mine), SetIndex.of(theirs));
        const only = (which: number) =>
          all
            .filter((_, at) => side[at] === which)
            .map(textOf)
            .sort();
        assert.deepEqual(result.lacks, only(0));
        assert.deepEqual(result.has, only(1));
      }),
      { numRuns: 40, endOnFailure: true },
    );
  });

  test('the same word of one message here and of another one there is a difference', () => {
    const keyOf = (n: number, notedMs: number | null) =>
      syncKeyOf({
        form: 'envelope',
        itemHash: String(n).repeat(64),
        ...{ sender: '', channel: null, time: 0, sentTime: null, tags: [], notedMs },
      });
    const lateMs = 3_600_000;
    const mine = SetIndex.of([keyOf(1, lateMs), keyOf(2, null), keyOf(3, null)]);
    const theirs = SetIndex.of([keyOf(1, null), keyOf(2, lateMs), keyOf(3, null)]);
    const { lacks, has } = reconcile(mine, theirs);
    assert.deepEqual([lacks.length, has.length], [2, 2]);
  });

  test('traffic follows the difference, not the size', (t) => {
    const all = Array.from({ length: 50_000 }, (_, n) => ({ time: Math.floor(n / 3), id: idOf(n, n % 256) }));
    const lacking = all.filter((_, n) => n % 1_000 !== 7);
    const result = reconcile(SetIndex.of(lacking), SetIndex.of(all));
    t.diagnostic(`50 differences in 50,000: ${result.bytes} bytes, ${result.rounds} rounds`);
    assert.equal(result.lacks.length, 50);
    assert.ok(result.bytes < 50 * 1_200);
    assert.ok(reconcile(SetIndex.of(all), SetIndex.of(all)).bytes < 1_000);
    assert.equal(reconcile(SetIndex.of([]), SetIndex.of(lacking)).lacks.length, lacking.length);
    assert.equal(reconcile(SetIndex.of(lacking), SetIndex.of([])).has.length, lacking.length);
  });

  test('bytes of strangers are refused or read, and answered in bounds', () => {
    const set = SetIndex.of(Array.from({ length: 2_000 }, (_, n) => ({ time: n, id: idOf(n, 1) })));
    const start = encodeRanges(openQuestion(set));
    const mutated = fc.tuple(fc.nat(start.length - 1), fc.nat(255)).map(([at, byte]) => {
      const bytes = start.slice();
      bytes[at] = byte;
      return bytes;
    });
    fc.assert(
      fc.property(fc.oneof(fc.uint8Array({ maxLength: 300 }), mutated), (bytes) => {
        for (const decode of [decodeQuestion, decodeAnswer]) {
          try {
            const ranges = decode(bytes);
            encodeRanges(
              answerRanges(
                set,
                ranges.filter(({ kind }) => kind !== 'keys'),
              ),
            );
          } catch (error) {
            assert.equal((error as { code?: string }).code, 'INVALID_PARAMETERS');
          }
        }
      }),
      { numRuns: 2_000 },
    );
  });
});
