import {
  AppError,
  answersQuestion,
  continueRanges,
  openQuestion,
  QUESTION_RANGES_MAX,
  type Range,
  type ShortKey,
  shortHashOf,
  textOfShortKey,
  WANTED_KEYS_MAX,
} from '@skerry/protocol';
import type { Accepted } from '../../intake/accepted.ts';
import { addTallies, NO_TALLY, type PassedOn, type ReadFrame, type Tally } from '../../intake/passed-on.ts';
import { shortKeyOfAccepted } from '../../intake/pipeline/statement.ts';
import { FRAMES_BYTES } from './frames.ts';
import type { PeerLink } from './link.ts';
import type { NodeSet } from './node-set.ts';
import { OFFERED_KEYS_MAX } from './offers.ts';

/** Questions in one session. A set of a billion keys that differs everywhere needs more: the next session goes on. */
const ROUNDS_MAX = 8_000;
/** Answers in a row after which nothing new was learnt: the peer leads us around. */
const IDLE_ROUNDS_MAX = 64;
/**
 * Ranges that differ and are not yet compared further. An answer to a whole question leaves 32,768 at most where everything
 * differs, and what is found last is asked about first: seven questions deep, for a set of 10^12 keys, they are 230,000.
 */
export const OPEN_RANGES_MAX = 2 ** 18;
/**
 * Answers of one session that bring less than half of what was asked for, although there was room for all. An honest peer fills a body; of
 * what it listed only a few became others since. After so many the session ends: the next one asks for the rest, after those with others.
 */
const SHORT_ANSWERS_MAX = 16;
/** An answer that is shorter had room: a peer fills FRAMES_BYTES, by a count that is half a kilobyte for each message too high. */
const ROOMY_BYTES = FRAMES_BYTES / 2;
/** Messages in one session that nobody signed: enough to know. */
const FORGED_MAX = 20;
/** Keys that one peer is not asked for again for a while, since what it sent of them was not kept. */
const DECLINED_MAX = 100_000;
const DECLINED_MS = 600_000;

/** What a session that only compares lists of what it finds missing. */
export const MISSING_MAX = 10_000;

/** Messages ahead of the clock that one session looks for: what is beyond is not compared until its time comes. */
const LATER_COUNTED_MAX = 1_000;

export interface SessionOptions {
  readonly set: Pick<NodeSet, 'index' | 'has'>;
  /** What the peer sends goes through it. */
  readonly source: PassedOn;
  /** What this peer sent in vain: what another one says of the same keys is another matter. */
  readonly declined: Declined;
  /** Whose key, by its hash part, counts as the peer says against this node's own word (PeerLacks). */
  readonly yieldsTo?: (key: ShortKey) => boolean;
  /** What is missing is not fetched: the first of it is put here, and at MISSING_MAX the session ends. */
  readonly missing?: ShortKey[];
  readonly signal: AbortSignal;
  /** Whether a message of this time, Unix seconds, is ahead of the clock: it is taken when its time comes. */
  readonly isLater: (time: number) => boolean;
  /** Told after each step. */
  readonly onProgress?: (tally: Tally) => void;
  /** Told how many messages came that this node did not have, and has now. */
  readonly onBrought?: (count: number) => void;
}

export interface SessionResult {
  readonly tally: Tally;
  readonly rounds: number;
  /** Of questions and answers; the messages themselves are not in it. */
  readonly sizeBytes: number;
  /** Messages that this node lacked, and those that the peer lacks. */
  readonly lacked: number;
  readonly had: number;
  /** Messages of the peer that are ahead of the clock; from LATER_COUNTED_MAX on not all are counted. */
  readonly later: number;
  /** The first of those that the peer lacks. */
  readonly peerLacks: readonly ShortKey[];
}

/** Keys whose messages one peer sent and that were not kept: refused here, or not the copy that this node keeps. */
export class Declined {
  readonly #until = new Map<string, number>();
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  has(key: ShortKey): boolean {
    return (this.#until.get(textOfShortKey(key)) ?? 0) > this.#now();
  }

  note(key: ShortKey): void {
    const text = textOfShortKey(key);
    this.#until.delete(text);
    this.#until.set(text, this.#now() + DECLINED_MS);
    const oldest = this.#until.keys().next();
    if (this.#until.size > DECLINED_MAX && !oldest.done) this.#until.delete(oldest.value);
  }
}

/** Its forgeries are held against the peer, and nothing more. */
export class ForgedError extends AppError {
  constructor(forged: number) {
    super('PEER_MISBEHAVED', `the peer sent ${forged} messages without a valid signature`);
  }
}

/** @throws ForgedError for more than one session takes of what nobody signed */
export function checkTally(tally: Tally): void {
  if (tally.forged > FORGED_MAX) throw new ForgedError(tally.forged);
}

/** What a peer sends of messages that it listed; at least one. Throws UPSTREAM_UNAVAILABLE, and what the link throws. */
export async function fetchListed(
  link: PeerLink,
  asked: readonly ShortKey[],
  signal: AbortSignal,
): Promise<Buffer[]> {
  const frames = await link.fetchMessages(asked, signal);
  // One alone may have become another since it was listed; the next session sees it.
  if (frames.length === 0)
    throw new AppError(
      'UPSTREAM_UNAVAILABLE',
      `the peer sent none of ${asked.length} messages that it listed`,
    );
  return frames;
}

/**
 * Throws PEER_MISBEHAVED where a peer sends what it was not asked for. By hash alone: what no hash covers may be another by now, and is
 * settled where the message is kept.
 */
export function checkAsked(asked: readonly ShortKey[], read: readonly ReadFrame[]): void {
  const hashes = new Set(asked.map(({ id }) => shortHashOf(id)));
  const isUnasked = (one: ReadFrame) =>
    'accepted' in one && !hashes.has(shortHashOf(shortKeyOfAccepted(one.accepted).id));
  if (read.length > asked.length || read.some(isUnasked))
    throw new AppError('PEER_MISBEHAVED', 'the peer sent messages that were not requested');
}

/** Counts the answers of one session that are short. @throws UPSTREAM_UNAVAILABLE for one too many */
function countShort(): (asked: readonly ShortKey[], frames: readonly Buffer[]) => void {
  let short = 0;
  return (asked, frames) => {
    if (frames.length * 2 >= asked.length) return;
    const sizeBytes = frames.reduce((sum, { length }) => sum + length, 0);
    if (sizeBytes >= ROOMY_BYTES || ++short <= SHORT_ANSWERS_MAX) return;
    throw new AppError(
      'UPSTREAM_UNAVAILABLE',
      `the peer sent less than half of what it listed, ${short} times in one session`,
    );
  };
}

/** Fetches what a peer has, in requests of a limited size, and keeps it. */
async function fetchLacking(
  link: PeerLink,
  lacking: readonly ShortKey[],
  checkAnswer: ReturnType<typeof countShort>,
  options: SessionOptions,
): Promise<Tally> {
  const { set, source, declined, yieldsTo = () => false, missing, signal } = options;
  let total = NO_TALLY;
  if (missing) {
    missing.push(...lacking.slice(0, MISSING_MAX - missing.length));
    return total;
  }
  let left = lacking.filter((key) => (yieldsTo(key) || !declined.has(key)) && !set.has(key));
  while (left.length > 0) {
    const asked = left.slice(0, WANTED_KEYS_MAX);
    const frames = await fetchListed(link, asked, signal);
    const read = await source.read(frames);
    checkAsked(asked, read);
    const isOverruled = (accepted: Accepted) => yieldsTo(shortKeyOfAccepted(accepted));
    total = addTallies(total, await source.keep(read, isOverruled));
    options.onProgress?.(total);
    checkTally(total);
    const arrived = frames.length;
    // A body has room for so much; what did not fit is asked for again, and what is behind the last one that came.
    const isWhole = arrived >= asked.length;
    const rest = asked.filter((key) => !set.has(key));
    options.onBrought?.(asked.length - rest.length);
    checkAnswer(asked, frames);
    if (isWhole || rest.length === asked.length) {
      for (const key of rest) declined.note(key);
      left = left.slice(asked.length);
    } else left = [...rest, ...left.slice(asked.length)];
  }
  return total;
}

/** The first ranges of a question, and the rest for another one. */
const cut = (open: readonly Range[]): [Range[], Range[]] => [
  open.slice(0, QUESTION_RANGES_MAX),
  open.slice(QUESTION_RANGES_MAX),
];

/** Messages of a peer that are ahead of the clock: beyond what a session counts its own number says it, what it has without what both have. */
export const countLater = (
  { later, had }: SessionResult,
  { messages }: { readonly messages: number },
  { index }: Pick<NodeSet, 'index'>,
): number => (later < LATER_COUNTED_MAX ? later : Math.max(later, messages - (index.size - had)));

const NO_RESULT: SessionResult = {
  tally: NO_TALLY,
  rounds: 0,
  sizeBytes: 0,
  lacked: 0,
  had: 0,
  later: 0,
  peerLacks: [],
};

/** Finds what a peer has and this node lacks, and takes it. Most peers do the same on their own. Throws what the link throws. */
export async function reconcile(link: PeerLink, options: SessionOptions): Promise<SessionResult> {
  const { set, signal, isLater, missing = [] } = options;
  let open: readonly Range[] = openQuestion(set.index);
  let result: SessionResult = NO_RESULT;
  const checkAnswer = countShort();
  let idle = 0;
  while (open.length > 0 && result.rounds < ROUNDS_MAX && missing.length < MISSING_MAX) {
    const [question, rest] = cut(open);
    const { answer, sizeBytes } = await link.askRanges(question, signal);
    if (!answersQuestion(question, answer))
      throw new AppError('PEER_MISBEHAVED', 'the peer returned ranges that were not requested');
    const listed = OFFERED_KEYS_MAX - result.peerLacks.length;
    const { open: next, lacks, has, hasCount } = continueRanges(set.index, answer, listed);
    const due = lacks.filter(({ time }) => !isLater(time));
    const tally = await fetchLacking(link, due, checkAnswer, {
      ...options,
      onProgress: (some) => options.onProgress?.(addTallies(result.tally, some)),
    });
    idle = lacks.length + hasCount === 0 ? idle + 1 : 0;
    if (idle > IDLE_ROUNDS_MAX || next.length + rest.length > OPEN_RANGES_MAX)
      throw new AppError('PEER_MISBEHAVED', "the peer's answers do not end");
    result = {
      tally: addTallies(result.tally, tally),
      rounds: result.rounds + 1,
      sizeBytes: result.sizeBytes + sizeBytes,
      lacked: result.lacked + lacks.length,
      had: result.had + hasCount,
      later: result.later + (lacks.length - due.length) + tally.later,
      peerLacks: [...result.peerLacks, ...has],
    };
    // What is found last is asked about first, so that what is open stays small.
    const following = [...next, ...rest];
    open =
      result.later < LATER_COUNTED_MAX
        ? following
        : following.filter(({ lower: { time } }) => !Number.isFinite(time) || !isLater(time));
  }
  return result;
}
