import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  answerRanges,
  decodeAnswer,
  decodeQuestion,
  encodeRanges,
  hexToBytes,
  type SyncKey,
  sha256Hex,
} from '@skerry/protocol';
import { ERASE_AFTER_MS, eraseForgotten } from '../../../intake/erase.ts';
import { createTestCore, signers, type TestCore } from '../../../testing/core.ts';
import type { PeerLink } from '../link.ts';
import { SetIndex } from '../set-index.ts';
import { linkTo } from '../testing/setup.ts';
import { Doubted, LISTED_MAX } from './doubted.ts';

const { alice } = signers;
const signal = new AbortController().signal;

const keyOf = (time: number, text: string): SyncKey => ({
  time,
  id: hexToBytes(`${sha256Hex(text)}00000000`)!,
});

/** A peer that compares a set of its own. */
const peerWith = (core: TestCore, forgotten: SetIndex, asked: number[]): PeerLink => ({
  ...linkTo('peer', () => core),
  askRanges: async (question) => {
    const sent = encodeRanges(question);
    const answer = encodeRanges(answerRanges(forgotten, decodeQuestion(sent)));
    return { answer: decodeAnswer(answer), sizeBytes: sent.length + answer.length };
  },
  fetchMessages: async (keys) => {
    asked.push(keys.length);
    return [];
  },
});

/** Messages that are erased here, dated one second after another. */
async function eraseSome(core: TestCore, count: number): Promise<void> {
  const { db } = core.rooms;
  const hashes: string[] = [];
  for (let at = 0; at < count; at++) {
    const { body } = await core.send(alice, { type: 'POST', content: { type: 'note', content: `${at}` } });
    hashes.push(body.item_hash);
  }
  await core.send(alice, { type: 'FORGET', content: { hashes } });
  await core.rooms.pipeline.idle();
  await eraseForgotten(db, Date.now() + 2 * ERASE_AFTER_MS);
}

for (const [name, isThere] of [
  ['that are not here any more', (at: number) => at < 0],
  ['of which the peer has every other one', (at: number) => at % 2 === 1],
] as const)
  test(`what is forgotten here alone is asked for behind however many others ${name}`, async () => {
    await using core = await createTestCore();
    await eraseSome(core, 3);
    const { forgotten, ...set } = core.rooms.sync.set;
    const others = Array.from({ length: 2.5 * LISTED_MAX }, (_, at) => keyOf(at >> 3, `${at}`));
    const ours = Array.from({ length: forgotten.size }, (_, at) => forgotten.keyAt(at));
    const own = SetIndex.of([...others, ...ours]);
    const asked: number[] = [];
    const link = peerWith(core, SetIndex.of(others.filter((_, at) => isThere(at))), asked);
    const nameOf = core.rooms.sync.set.nameOf.bind(core.rooms.sync.set);
    const doubted = new Doubted({
      db: core.rooms.db,
      set: { ...set, forgotten: own, nameOf } as never,
      clock: { now: Date.now, uptime: () => performance.now() },
    });
    const source = core.rooms.intake.peer;
    for (let session = 0; session < 4; session++) await doubted.ask(link, { source, signal });
    assert.deepEqual(asked, [3]);
  });

test('a peer that takes most of a minute for each answer is asked in a few sessions, each of which ends soon', async () => {
  await using core = await createTestCore();
  await eraseSome(core, 3);
  const { forgotten, ...set } = core.rooms.sync.set;
  const others = Array.from({ length: 30_000 }, (_, at) => keyOf(at >> 3, `${at}`));
  const ours = Array.from({ length: forgotten.size }, (_, at) => forgotten.keyAt(at));
  const asked: number[] = [];
  let uptimeMs = 0;
  let questions = 0;
  const peer = peerWith(core, SetIndex.of(others.filter((_, at) => at % 4_000 > 0)), asked);
  const link: PeerLink = {
    ...peer,
    askRanges: (...given) => {
      uptimeMs += 55_000;
      questions++;
      return peer.askRanges(...given);
    },
  };
  const nameOf = core.rooms.sync.set.nameOf.bind(core.rooms.sync.set);
  const doubted = new Doubted({
    db: core.rooms.db,
    set: { ...set, forgotten: SetIndex.of([...others, ...ours]), nameOf } as never,
    clock: { now: Date.now, uptime: () => uptimeMs },
  });
  const source = core.rooms.intake.peer;
  let isWhole = false;
  for (let session = 0; session < 32 && !isWhole; session++) {
    questions = 0;
    ({ isWhole } = await doubted.ask(link, { source, signal }));
    assert.ok(questions <= 3, `${questions} questions in one session`);
  }
  assert.ok(isWhole);
  assert.deepEqual(asked, [3]);
});
