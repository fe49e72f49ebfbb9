import {
  AppError,
  answersQuestion,
  type Bound,
  compareBounds,
  continueRanges,
  hexToBytes,
  openQuestion,
  QUESTION_RANGES_MAX,
  type Range,
  type ShortKey,
  START,
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
import type { NetworkClock } from '../clock.ts';
import type { PeerLink } from '../link.ts';
import type { NodeSet } from '../node-set.ts';
import { checkAsked, checkTally, Declined, OPEN_RANGES_MAX, type SessionOptions } from '../session.ts';
import { CONTENTS_MAX, type ContentFiles, contentOf, fetchContents } from './contents.ts';

/** Questions in one session: two or three narrow down a million, where a few differ. */
const ROUNDS_MAX = 16;
/** Time in one session after which no further question is asked: a slow peer is asked for the rest in the next one. */
const LISTING_MS = 120_000;
/** What one session lists of what is forgotten here and not there: a peer that lacks a FORGET in every range has as many. */
export const LISTED_MAX = 10_000;

const compareShort = (a: ShortKey, b: ShortKey) =>
  a.time === b.time ? Number(a.id > b.id) - Number(a.id < b.id) : a.time - b.time;

/** The place just before a key. */
const boundOf = ({ time, id }: ShortKey): Bound => ({ time, prefix: hexToBytes(shortHashOf(id))! });

interface Listed {
  /** In their order. */
  readonly doubted: readonly ShortKey[];
  /** All are listed that are before it; undefined: all that there are. */
  readonly until: Bound | undefined;
}

/**
 * The messages that are forgotten here and not at a peer, the first of them from a place on. Throws PEER_MISBEHAVED, and what the link
 * throws.
 */
async function listDoubted(
  link: PeerLink,
  { forgotten }: Pick<NodeSet, 'forgotten'>,
  from: Bound,
  isOver: () => boolean,
  signal: AbortSignal,
): Promise<Listed> {
  let doubted: ShortKey[] = [];
  let until: Bound | undefined;
  let open: readonly Range[] = openQuestion(forgotten, from);
  for (let round = 0; round < ROUNDS_MAX && open.length > 0 && !isOver(); round++) {
    const question = open.slice(0, QUESTION_RANGES_MAX);
    const { answer } = await link.askRanges(question, signal, 'forgotten');
    if (!answersQuestion(question, answer))
      throw new AppError('PEER_MISBEHAVED', 'the peer returned ranges that were not requested');
    const { open: next, has } = continueRanges(forgotten, answer, LISTED_MAX);
    doubted = [...doubted, ...has].toSorted(compareShort).slice(0, LISTED_MAX);
    open = [...next, ...open.slice(QUESTION_RANGES_MAX)];
    if (open.length > OPEN_RANGES_MAX) throw new AppError('PEER_MISBEHAVED', "the peer's answers do not end");
    if (doubted.length < LISTED_MAX) continue;
    // Nothing behind the last of so many: the next session goes on there.
    const end = boundOf(doubted.at(-1)!);
    until = end;
    open = open.filter(({ lower }) => compareBounds(lower, end) < 0);
  }
  return { doubted, until: open[0]?.lower ?? until };
}

interface Asked {
  /** What is asked for, by the key that it has among all messages. */
  readonly key: ShortKey;
  readonly doubt: ShortKey;
}

/** Of these, in their order, the first ones whose texts are not here. */
async function findErased(
  db: Kysely<Schema>,
  doubts: readonly { readonly name: string; readonly doubt: ShortKey }[],
): Promise<Asked[]> {
  if (doubts.length === 0) return [];
  const { rows } = await sql<KeyColumns & { place: number }>`
    select item_hash, form, sender, channel, "time", sent_time, tags, noted_ms, erased, place::int
    from unnest(${doubts.map(({ name }) => name)}::text[]) with ordinality as k (item_hash, place) join messages using (item_hash)
    where erased = 'forgotten' and content is null and source_text is null
    order by place limit ${WANTED_KEYS_MAX}`.execute(db);
  return rows.map((row) => ({ key: shortKeyOf(keyOfRow(row)), doubt: doubts[row.place - 1]!.doubt }));
}

/**
 * Of what was asked for what is not to be asked for again at once. What did not fit is behind what came.
 * @param contents files that were asked for; of more than one session fetches the rest is for the next one
 */
function answeredOf(
  asked: readonly Asked[],
  read: readonly ReadFrame[],
  contents: readonly string[],
): readonly Asked[] {
  const left = new Set(contents.slice(CONTENTS_MAX).map(shortHashOf));
  const end = asked.findIndex(({ key }) => left.has(shortHashOf(key.id)));
  if (end !== -1) return asked.slice(0, end);
  const came = new Set(
    read.flatMap((one) => ('accepted' in one ? [shortHashOf(shortKeyOfAccepted(one.accepted).id)] : [])),
  );
  const last = asked.findLastIndex(({ key }) => came.has(shortHashOf(key.id)));
  return last === -1 ? asked : asked.slice(0, last + 1);
}

/** Where the next session goes on; undefined: at the start. */
function placeAfter(asked: readonly Asked[], answered: number, { until }: Listed): Bound | undefined {
  const next = asked[answered] ?? (asked.length === WANTED_KEYS_MAX ? asked.at(-1) : undefined);
  return next ? boundOf(next.doubt) : until;
}

export interface Compared {
  /** Of how many the peer has no text either, and tells otherwise. */
  readonly disputed: number;
  /** Whether all that is forgotten here is compared. Where not, the next session goes on. */
  readonly isWhole: boolean;
}

export interface DoubtedOptions {
  readonly db: Kysely<Schema>;
  readonly set: Pick<NodeSet, 'forgotten' | 'nameOf'>;
  /** Where contents are kept that a peer is asked for; none is where left out. */
  readonly files?: ContentFiles;
  readonly clock: Pick<NetworkClock, 'now' | 'uptime'>;
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
  readonly #options: DoubtedOptions;
  /** What each peer was asked for lately, and where the last session with it left off. */
  readonly #peers = new WeakMap<PeerLink, { readonly lately: Declined; from: Bound }>();

  constructor(options: DoubtedOptions) {
    this.#options = options;
  }

  /** Asks a peer for the texts. Throws what the link, `read` and `keep` throw, PEER_MISBEHAVED and ForgedError. */
  async ask(
    link: PeerLink,
    { source, signal, onProgress }: Pick<SessionOptions, 'source' | 'signal' | 'onProgress'>,
  ): Promise<Compared> {
    const { db, set, clock } = this.#options;
    const { forgotten } = set;
    if (forgotten.size === 0) return { disputed: 0, isWhole: true };
    const peer = this.#peers.get(link) ?? { lately: new Declined(clock.now), from: START };
    this.#peers.set(link, peer);
    const endMs = clock.uptime() + LISTING_MS;
    const isOver = () => clock.uptime() >= endMs;
    const listed = await listDoubted(link, set, peer.from, isOver, signal);
    const doubts = listed.doubted.flatMap((doubt) => {
      const key = peer.lately.has(doubt) ? undefined : forgotten.find(doubt);
      return key ? [{ name: set.nameOf(key), doubt }] : [];
    });
    const asked = await findErased(db, doubts);
    const follow = (answered: number): boolean => {
      const next = placeAfter(asked, answered, listed);
      peer.from = next ?? START;
      return next === undefined;
    };
    const isListed = follow(asked.length);
    if (asked.length === 0) return { disputed: 0, isWhole: isListed };
    const keys = asked.map(({ key }) => key);
    const frames = await link.fetchMessages(keys, signal);
    const first = await source.read(frames);
    checkAsked(keys, first);
    const { read, contents } = await this.#readContents(link, source, { frames, read: first }, signal);
    const answered = answeredOf(asked, read, contents);
    for (const { doubt } of answered) peer.lately.note(doubt);
    const isWhole = follow(answered.length);
    const signed = read.filter((one) => 'fault' in one || !one.accepted.isSkeleton);
    const tally = await source.keep(signed);
    onProgress?.(tally);
    checkTally(tally);
    return { disputed: countDisputed(listed.doubted, read), isWhole };
  }

  /** Of what came the contents that are files: who has the message in force has read them. @returns contents: all that there are */
  async #readContents(
    link: PeerLink,
    source: SessionOptions['source'],
    { frames, read }: { readonly frames: readonly Buffer[]; readonly read: readonly ReadFrame[] },
    signal: AbortSignal,
  ): Promise<{ readonly read: readonly ReadFrame[]; readonly contents: readonly string[] }> {
    const { files } = this.#options;
    const contents = read.flatMap((one) => contentOf(one) ?? []);
    if (!files || contents.length === 0) return { read, contents: [] };
    const here = await fetchContents(link, files, contents, signal);
    const places = read.flatMap((one, at) => (here.has(contentOf(one) ?? '') ? [at] : []));
    const again = await source.read(places.map((at) => frames[at]!));
    const readAgain = new Map(places.map((at, index) => [at, again[index]!]));
    return { read: read.map((one, at) => readAgain.get(at) ?? one), contents };
  }
}
