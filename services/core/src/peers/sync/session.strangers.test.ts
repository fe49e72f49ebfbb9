import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { answerRanges, type Range, type ShortKey, START, type SyncKey, shortKeyOf } from '@skerry/protocol';
import { NO_TALLY } from '../../intake/passed-on.ts';
import type { PeerLink } from './link.ts';
import { OFFERED_KEYS_MAX } from './offers.ts';
import { Declined, MISSING_MAX, reconcile, type SessionResult } from './session.ts';
import { SetIndex } from './set-index.ts';

/** After so many questions a liar gives up: a session that goes on until then is not bounded. */
const QUESTIONS_MAX = 100;
const never = async () => Promise.reject(new Error('not asked for'));

/** A session that fetches nothing, with a peer that answers as it likes. */
function compare(
  index: SetIndex,
  answer: (question: readonly Range[]) => Range[],
  missing: ShortKey[] = [],
): Promise<SessionResult> {
  const link: PeerLink = {
    ...{ name: 'liar', greet: never, fetchMessages: never, fetchPage: never, offer: never },
    askRanges: async (question) => ({ answer: answer(question), sizeBytes: 1 }),
  };
  return reconcile(link, {
    set: { index, has: () => false },
    ...{ missing, isLater: () => false, signal: new AbortController().signal },
    source: { read: never, keep: async () => NO_TALLY },
    declined: new Declined(() => 0),
  });
}

/** A range in parts, none of which is as here. */
function splitWrongly({ lower, upper }: Range, parts: number): Range[] {
  const from = Number.isFinite(lower.time) ? lower.time : 0;
  const to = Number.isFinite(upper.time) ? upper.time : 2 ** 40;
  const bounds = Array.from({ length: parts - 1 }, (_, at) => ({
    time: from + ((to - from) * (at + 1)) / parts,
    prefix: new Uint8Array(),
  }));
  return [...bounds, upper].map((bound, at) => ({
    ...{ kind: 'fingerprint', lower: at === 0 ? lower : bounds[at - 1]!, upper: bound },
    fingerprint: new Uint8Array(16).fill(at + 1),
  }));
}

describe('a session with a peer that lies', () => {
  test('ends before what it says to differ fills the memory', async () => {
    let questions = 0;
    const answer = (question: readonly Range[]): Range[] => {
      if (++questions > QUESTIONS_MAX) return [];
      const [first, ...rest] = question;
      // One key more each time: something is learnt from each answer.
      const keys = [{ time: 0, id: questions.toString(16).padStart(40, '0') }];
      const listed: Range = { kind: 'keys', lower: START, upper: START, keys };
      return [listed, ...splitWrongly(first!, 9), ...rest.flatMap((range) => splitWrongly(range, 9))];
    };
    await assert.rejects(compare(new SetIndex(), answer), { code: 'PEER_MISBEHAVED' });
    assert.ok(questions < QUESTIONS_MAX);
  });

  test('lists no more of what the peer lacks than it can be offered: of an empty one that is everything', async () => {
    const size = OFFERED_KEYS_MAX + 5_000;
    const keys = Array.from({ length: size }, (_, time): SyncKey => ({ time, id: new Uint8Array(36) }));
    const result = await compare(SetIndex.of(keys), (question) =>
      question.map(({ lower, upper }) => ({ kind: 'keys', lower, upper, keys: [] })),
    );
    assert.deepEqual([result.had, result.peerLacks.length], [size, OFFERED_KEYS_MAX]);
  });
});

test('a comparison lists the first that is missing, in order, and asks for no more than that', async () => {
  const keys = Array.from({ length: 20 * MISSING_MAX }, (_, time): SyncKey => {
    const id = new Uint8Array(36);
    new DataView(id.buffer).setUint32(0, Math.imul(time + 1, 2_654_435_761));
    return { time, id };
  });
  const theirs = SetIndex.of(keys);
  const missing: ShortKey[] = [];
  const { rounds } = await compare(new SetIndex(), (question) => answerRanges(theirs, question), missing);
  assert.deepEqual(missing, keys.slice(0, MISSING_MAX).map(shortKeyOf));
  assert.ok(rounds < 20, `${rounds} rounds`);
});
