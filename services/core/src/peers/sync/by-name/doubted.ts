import {
  AppError,
  answersQuestion,
  continueRanges,
  openQuestion,
  QUESTION_RANGES_MAX,
  type Range,
  type ShortKey,
  shortHashOf,
  shortKeyOf,
  WANTED_KEYS_MAX,
} from '@skerry/protocol';
import { type Kysely, sql } from 'kysely';
import type { ReadFrame } from '../../../intake/passed-on.ts';
import {
  forgottenKeyOfAccepted,
  type KeyColumns,
  keyOfRow,
  shortKeyOfAccepted,
} from '../../../intake/pipeline/statement.ts';
import type { Schema } from '../../../store/schema.ts';
import type { PeerLink } from '../link.ts';
import type { NodeSet } from '../node-set.ts';
import { checkTally, Declined, type SessionOptions } from '../session.ts';

/** Questions in one session: two or three narrow down a million, where a few differ. */
const ROUNDS_MAX = 16;
/** What one session lists of what is forgotten here and not there: a peer that lacks a FORGET in every range has as many. */
const LISTED_MAX = 10_000;

/** The messages that are forgotten here and not at a peer, the first of them. Throws PEER_MISBEHAVED, and what the link throws. */
async function listDoubted(
  link: PeerLink,
  { forgotten }: Pick<NodeSet, 'forgotten'>,
  signal: AbortSignal,
): Promise<ShortKey[]> {
  const doubted: ShortKey[] = [];
  let open: readonly Range[] = openQuestion(forgotten);
  for (let round = 0; round < ROUNDS_MAX && open.length > 0 && doubted.length < LISTED_MAX; round++) {
    const question = open.slice(0, QUESTION_RANGES_MAX);
    const { answer } = await link.askRanges(question, signal, 'forgotten');
    if (!answersQuestion(question, answer))
      throw new AppError('PEER_MISBEHAVED', 'the peer returned ranges that were not requested');
    const { open: next, has } = continueRanges(forgotten, answer, LISTED_MAX - doubted.length);
    doubted.push(...has);
    open = [...next, ...open.slice(QUESTION_RANGES_MAX)];
  }
  return doubted;
}

/** Of these the ones whose texts are not here, by the key that they have among all messages. */
async function findErased(db: Kysely<Schema>, names: readonly string[]): Promise<ShortKey[]> {
  if (names.length === 0) return [];
  const { rows } = await sql<KeyColumns>`
    select item_hash, form, sender, channel, "time", sent_time, tags, noted_ms, erased from messages
    where item_hash = any(${names}::text[]) and erased = 'forgotten' and content is null and source_text is null
    order by item_hash limit ${WANTED_KEYS_MAX}`.execute(db);
  return rows.map((row) => shortKeyOf(keyOfRow(row)));
}

/** Of what was asked for what is not to be asked for again at once. What did not fit is behind what came. */
function answeredOf(asked: readonly ShortKey[], read: readonly ReadFrame[]): readonly ShortKey[] {
  const came = new Set(
    read.flatMap((one) => ('accepted' in one ? [shortHashOf(shortKeyOfAccepted(one.accepted).id)] : [])),
  );
  const last = asked.findLastIndex(({ id }) => came.has(shortHashOf(id)));
  return last === -1 ? asked : asked.slice(0, last + 1);
}

/** How many a peer tells of otherwise than this node. */
function countDisputed(doubted: readonly ShortKey[], read: readonly ReadFrame[]): number {
  const told = new Set(doubted.map(({ id }) => id));
  const left = read.flatMap((one) =>
    'accepted' in one && one.accepted.isSkeleton ? [shortKeyOf(forgottenKeyOfAccepted(one.accepted)).id] : [],
  );
  return left.filter((id) => !told.has(id)).length;
}

/**
 * What is forgotten here by the word of a peer, and is not where another one is asked: that one may have the text, which proves whose
 * the message is and what it amended. By the key that both have of it no comparison of all messages finds it.
 */
export class Doubted {
  readonly #db: Kysely<Schema>;
  readonly #set: Pick<NodeSet, 'forgotten' | 'index' | 'nameOf'>;
  readonly #now: () => number;
  /** What each peer was asked for lately. */
  readonly #asked = new WeakMap<PeerLink, Declined>();

  constructor(db: Kysely<Schema>, set: Pick<NodeSet, 'forgotten' | 'index' | 'nameOf'>, now: () => number) {
    this.#db = db;
    this.#set = set;
    this.#now = now;
  }

  /** Asks a peer for the texts. @returns of how many it has none either, and tells otherwise. Throws what the link, `read` and `keep` throw, PEER_MISBEHAVED and ForgedError. */
  async ask(
    link: PeerLink,
    { source, signal, onProgress }: Pick<SessionOptions, 'source' | 'signal' | 'onProgress'>,
  ): Promise<number> {
    const { forgotten } = this.#set;
    if (forgotten.size === 0) return 0;
    const lately = this.#asked.get(link) ?? new Declined(this.#now);
    this.#asked.set(link, lately);
    const doubted = await listDoubted(link, this.#set, signal);
    const names = doubted.flatMap((short) => {
      const key = lately.has(short) ? undefined : forgotten.find(short);
      return key ? [this.#set.nameOf(key)] : [];
    });
    const asked = await findErased(this.#db, names);
    if (asked.length === 0) return 0;
    const read = await source.read(await link.fetchMessages(asked, signal));
    const answered = new Set(answeredOf(asked, read).map(({ id }) => shortHashOf(id)));
    for (const key of doubted) if (answered.has(shortHashOf(key.id))) lately.note(key);
    const wanted = new Set(asked.map(({ id }) => shortHashOf(id)));
    const signed = read.filter(
      (one) =>
        'fault' in one ||
        (!one.accepted.isSkeleton && wanted.has(shortHashOf(shortKeyOfAccepted(one.accepted).id))),
    );
    const tally = await source.keep(signed);
    onProgress?.(tally);
    checkTally(tally);
    return countDisputed(doubted, read);
  }
}
