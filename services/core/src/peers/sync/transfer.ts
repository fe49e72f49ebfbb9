import { AppError, bytesToHex, compareKeys, parseBound, type SyncKey } from '@skerry/protocol';
import { addTallies, NO_TALLY, type ReadFrame, type Tally } from '../../intake/passed-on.ts';
import { keyOfAccepted } from '../../intake/pipeline/statement.ts';
import { PAGE_MESSAGES } from './envelopes.ts';
import { FRAMES_BYTES } from './frames.ts';
import type { PeerLink } from './link.ts';
import type { NodeSet } from './node-set.ts';
import { checkTally, type SessionOptions } from './session.ts';

/** The first page is worked on in parts of so many messages: the database has something to do while the rest is verified. */
const FIRST_PART_MESSAGES = 500;
/** A page of less than this share of what it has room for, by number and by size, is thin, unless it is the last. */
const THIN_SHARE = 1 / 8;
/** Thin pages in a row. */
const THIN_PAGES_MAX = 16;
/** Messages of one transfer that were here already, or are not kept, beyond as many as this node has. */
const USELESS_MAX = 20_000;
/** A peer that brought less than this in so long is slow: another one that waits has its turn. */
const TURN_MS = 120_000;
const TURN_MESSAGES = 5_000;
const TURN_BYTES = 64 * 1024 * 1024;
/** However much a peer brings, which may have no end: for so long at a time while another one waits. */
const TURN_MAX_MS = 3_600_000;

export interface TransferOptions extends SessionOptions {
  /** Where an earlier turn, or process, had come; '' for the start. */
  readonly place: string;
  /** Everything before this place is durable. */
  readonly savePlace: (place: string) => Promise<void>;
  /** Whether another peer waits until this transfer ends. */
  readonly isWaitedFor: () => boolean;
  /** Milliseconds since whenever; never set. */
  readonly uptime: () => number;
}

export interface TransferResult {
  readonly tally: Tally;
  /** Whether the peer has no more pages for now. Where not, its turn is over and it goes on at the saved place. */
  readonly isEnded: boolean;
}

function timeOfPlace(place: string): number {
  try {
    return parseBound(place).time;
  } catch (cause) {
    throw new AppError('PEER_MISBEHAVED', "the peer's pages do not advance", { cause });
  }
}

const sizeOf = (frames: readonly Buffer[]) => frames.reduce((sum, { length }) => sum + length, 0);

const isThin = (frames: readonly Buffer[]) =>
  frames.length < PAGE_MESSAGES * THIN_SHARE && sizeOf(frames) < FRAMES_BYTES * THIN_SHARE;

type Page = Awaited<ReturnType<PeerLink['fetchPage']>>;

interface Part {
  readonly frames: readonly Buffer[];
  /** Where the next page begins; null: this was the last one; undefined: this page has more. */
  readonly next: string | null | undefined;
}

function* partsOf({ frames, next }: Page, size: number): Generator<Part> {
  for (let end = size; ; end += size) {
    const isLast = end >= frames.length;
    yield { frames: frames.slice(end - size, end), next: isLast ? next : undefined };
    if (isLast) return;
  }
}

/** The pages of a peer in their order; the next one is on its way while one is worked on. */
async function* readPages(link: PeerLink, place: string, signal: AbortSignal): AsyncGenerator<Part> {
  let loading: Promise<Page> | undefined = link.fetchPage(place, signal);
  let last = place;
  let thin = 0;
  while (loading) {
    const page: Page = await loading;
    const { frames, next } = page;
    thin = isThin(frames) ? thin + 1 : 0;
    if (thin > THIN_PAGES_MAX || (next !== null && next <= last))
      throw new AppError('PEER_MISBEHAVED', "the peer's pages do not advance");
    loading = next === null ? undefined : link.fetchPage(next, signal);
    // A failure is met when the page is wanted.
    loading?.catch(() => {});
    yield* partsOf(page, last === place ? FIRST_PART_MESSAGES : PAGE_MESSAGES);
    last = next ?? last;
  }
}

/** What a transfer brings: whether it is worth going on with, and with this peer. */
class Worth {
  readonly #set: Pick<NodeSet, 'index'>;
  readonly #uptime: () => number;
  #useless = 0;
  readonly #begunMs: number;
  #sinceMs: number;
  #messages = 0;
  #sizeBytes = 0;

  constructor(set: Pick<NodeSet, 'index'>, uptime: () => number) {
    this.#set = set;
    this.#uptime = uptime;
    this.#begunMs = uptime();
    this.#sinceMs = this.#begunMs;
  }

  /** Before they are kept. @returns the keys of those that this node lacks */
  note(frames: readonly Buffer[], read: readonly ReadFrame[]): SyncKey[] {
    const keys: SyncKey[] = [];
    const lacked = frames.filter((_, at) => {
      const one = read[at]!;
      if (!('accepted' in one)) return false;
      const key = keyOfAccepted(one.accepted);
      if (this.#set.index.has(key)) return false;
      keys.push(key);
      return true;
    });
    this.#useless += frames.length - lacked.length;
    this.#messages += lacked.length;
    this.#sizeBytes += sizeOf(lacked);
    return keys;
  }

  /** The peer sends what is here or is not kept, in pages that may have no end: comparing sets finds the rest. */
  get isNone(): boolean {
    return this.#useless > this.#set.index.size + USELESS_MAX;
  }

  /** Whether another peer is to have its turn, if one waits. */
  isTurnOver(): boolean {
    const now = this.#uptime();
    return this.#isSlow(now) || now - this.#begunMs >= TURN_MAX_MS;
  }

  /** Whether the peer was slow in the time that is over; the next one begins then. */
  #isSlow(now: number): boolean {
    if (now - this.#sinceMs < TURN_MS) return false;
    const isSlow = this.#messages < TURN_MESSAGES && this.#sizeBytes < TURN_BYTES;
    this.#sinceMs = now;
    this.#messages = 0;
    this.#sizeBytes = 0;
    return isSlow;
  }
}

/** Whether each comes after the one before it, as the messages of a page do: none is there twice. */
const areInOrder = (keys: readonly SyncKey[]) =>
  keys.every((key, at) => at === 0 || compareKeys(keys[at - 1]!, key) < 0);

/** How many of these this node has, each counted once. */
function countKept(keys: readonly SyncKey[], { index }: Pick<NodeSet, 'index'>): number {
  const kept = keys.filter((key) => index.has(key));
  return areInOrder(kept) ? kept.length : new Set(kept.map(({ id }) => bytesToHex(id))).size;
}

/**
 * Takes everything that a peer has, page by page in the order of time: while one page is being written the next one waits for
 * its turn, ready, the one after that is verified, and one more is on its way. It ends where messages are ahead of the clock.
 */
export async function transfer(link: PeerLink, options: TransferOptions): Promise<TransferResult> {
  const { set, source, signal, savePlace, isLater, isWaitedFor, uptime } = options;
  const worth = new Worth(set, uptime);
  let total = NO_TALLY;
  let saving: Promise<void> = Promise.resolve();
  const write = async (
    before: Promise<void>,
    read: readonly ReadFrame[],
    lacked: readonly SyncKey[],
    next: Part['next'],
  ) => {
    const tally = await source.keep(read);
    options.onBrought?.(countKept(lacked, set));
    await before;
    await saving;
    // The next page does not wait for it.
    if (typeof next === 'string') saving = savePlace(next);
    saving.catch(() => {});
    total = addTallies(total, tally);
    options.onProgress?.(total);
    checkTally(total);
  };
  let isEnded = true;
  /** The page before the last one, and the last one. */
  let before: Promise<void> = Promise.resolve();
  let last = before;
  try {
    for await (const { frames, next } of readPages(link, options.place, signal)) {
      const read = await source.read(frames);
      const lacked = worth.note(frames, read);
      await before;
      [before, last] = [last, write(last, read, lacked, next)];
      // Met before a later page is written.
      last.catch(() => {});
      if (next === undefined) continue;
      if (next === null || isLater(timeOfPlace(next)) || worth.isNone) break;
      isEnded = !(worth.isTurnOver() && isWaitedFor());
      if (!isEnded) break;
    }
  } finally {
    await last;
    await saving;
  }
  return { tally: total, isEnded };
}
