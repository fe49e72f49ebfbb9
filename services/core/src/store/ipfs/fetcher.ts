import { asDatabaseError, BOUNDLESS, type DiskReserve } from '@skerry/database';
import { Failures, type Logger, pause, Rests } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import type { Kysely } from 'kysely';
import { Misses } from '../files/fetching/misses.ts';
import type { MissedFiles } from '../files/missed.ts';
import {
  endWant,
  isAwaited,
  listDue,
  listUnlacked,
  postponeWant,
  sortOf,
  type WantedFile,
  type WantedSort,
} from '../files/wanted.ts';
import type { Schema, VerdictReason } from '../schema.ts';
import { parseCid } from './cid.ts';
import type { IpfsFiles } from './ipfs-files.ts';
import { IPFS_LIMITS } from './limits.ts';
import { VainTries } from './vain-tries.ts';

const LOOK_MS = 500;

export interface FetcherOptions {
  readonly db: Kysely<Schema>;
  readonly files: IpfsFiles;
  readonly limitBytes: number;
  /** One try may take so long as a whole. */
  readonly tryMs: number;
  readonly now: () => number;
  readonly random?: () => number;
  readonly reserve?: Pick<DiskReserve, 'hasRoom'>;
  /** What messages were rejected for: fetched where a place is left. */
  readonly missed?: Pick<MissedFiles, 'names' | 'note' | 'skip'>;
  readonly log: Logger;
}

export interface FetchCounts {
  fetched: number;
  failed: number;
  durationMs: number;
}

/**
 * Why a CID is tried: a message waits for it, for the first time or again, or in any case one of a sender who keeps files here for long
 * (`keeper`); or one was rejected for it.
 */
type Sort = WantedSort | 'keeper' | 'missed';
const PENDING: readonly WantedSort[] = ['new', 'again'];
/**
 * A key is free, and so is a message of each: those who kept a file a day ago have places and tries beside those that anybody may take,
 * which they share as well.
 */
const KEEPER_MS = 24 * 3_600_000;
/** Where none of them waits that may be tried, it is not looked again before. */
const KEEPER_LOOK_MS = 4_000;
/**
 * Of each sort so many at the same time, and so many in a minute that nobody turns out to have, as of the names that peers are asked
 * for (files/fetching/asked-source.ts): CIDs that nobody has neither use up what gateways answer, nor hold up those that are tried first.
 */
const SHARES: Readonly<Record<Sort, { readonly parallel: number; readonly vainPerMinute: number }>> = {
  new: { parallel: IPFS_LIMITS.parallelPins, vainPerMinute: 14 },
  again: { parallel: IPFS_LIMITS.parallelPins / 2, vainPerMinute: 8 },
  keeper: { parallel: IPFS_LIMITS.parallelPins / 2, vainPerMinute: 8 },
  missed: { parallel: 1, vainPerMinute: 5 },
};
/** So often those that are due are chosen by lot (listDue). */
const LOT_PART = 0.5;
/** One try of what messages were rejected for; the next one goes on with the blocks that are still here. */
const MISSED_TRY_MS = 300_000;
/** What is so of a CID whoever asks for it, whenever. */
const FINAL_CODES: readonly string[] = ['FILE_TOO_LARGE', 'NOT_UNIXFS'];
/** What says nothing of the CID: a try that fails for it was not in vain. */
const OWN_CODES: readonly string[] = ['STORAGE_FULL', 'STORAGE_UNAVAILABLE', 'DATABASE_UNAVAILABLE'];

/** The first try follows this soon, whatever the random number. */
const RETRY_MIN_MS = 100;

/** Longer than any wait between two tries: what is due later than this was put off by a clock that has been set back since. */
const POSTPONED_MAX_MS = RETRY_MIN_MS + 1_000 * IPFS_LIMITS.retryMaxSeconds;

/** Whole milliseconds until the next try: anything up to a bound that doubles (facts of deployed nodes). */
export const retryAfterMs = (attempts: number, random: number): number =>
  RETRY_MIN_MS +
  Math.round(1_000 * random * Math.min(2 ** Math.min(attempts, 30), IPFS_LIMITS.retryMaxSeconds));

/** What a failed try is remembered by. */
export function reasonOfTry(error: unknown): VerdictReason & { readonly isForeseen: boolean } {
  const known = error instanceof AppError ? error : asDatabaseError(error);
  if (known) return { code: known.code, message: known.message, isForeseen: true };
  const isLate = error instanceof DOMException && error.name === 'TimeoutError';
  return isLate
    ? { code: 'IPFS_TIMEOUT', message: 'the content did not arrive in time', isForeseen: true }
    : { code: 'INTERNAL', message: 'the attempt failed; see the log', isForeseen: false };
}

/** `gone`: no message lacks it any more. */
type Became = VerdictReason | 'here' | 'stopped' | 'gone';
const isVain = (became: Became) => typeof became === 'object' && !OWN_CODES.includes(became.code);

interface Attempt {
  readonly ended: Promise<void>;
  readonly sort: Sort;
  /** Ends it: nobody waits for the file any more. */
  readonly gone: AbortController;
}

/**
 * Fetches the files that pending messages lack, several at the same time, and each again and again until it is here or
 * its messages are not pending any more: how long that is, is the pipeline's pending horizon. What it would not bring by then it tries
 * as often as is told (store/files/missed.ts).
 */
export class IpfsFetcher implements AsyncDisposable {
  readonly #options: Required<Omit<FetcherOptions, 'missed'>> & Pick<FetcherOptions, 'missed'>;
  readonly #counts: FetchCounts = { fetched: 0, failed: 0, durationMs: 0 };
  readonly #running = new Map<string, Attempt>();
  #keepersNextMs = 0;
  readonly #misses: Readonly<Record<Sort, Misses>> = {
    new: new Misses(SHARES.new.vainPerMinute),
    again: new Misses(SHARES.again.vainPerMinute),
    keeper: new Misses(SHARES.keeper.vainPerMinute),
    missed: new Misses(SHARES.missed.vainPerMinute),
  };
  readonly #vain: VainTries;
  /** Those whose failure could not be noted in the table. */
  readonly #rests: Rests;
  readonly #reading: Failures;
  readonly #noting: Failures;
  readonly #fetching: Failures;
  readonly #stop = new AbortController();
  #waker = new AbortController();
  readonly #loop: Promise<void>;

  constructor(options: FetcherOptions) {
    const { log, random = Math.random, reserve = BOUNDLESS } = options;
    this.#options = { ...options, random, reserve };
    this.#rests = new Rests({ random });
    this.#vain = new VainTries({ now: options.now, random });
    this.#reading = new Failures({ log, what: 'wanted files could not be read; retrying', random });
    this.#noting = new Failures({ log, what: 'a wanted file could not be recorded', random });
    this.#fetching = new Failures({ log, what: 'an IPFS file could not be fetched; retrying', random });
    this.#loop = this.#run();
  }

  get counts(): Readonly<FetchCounts> {
    return this.#counts;
  }

  /** A file may be wanted that was not: looks at once. */
  wake(): void {
    this.#waker.abort();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#loop;
    await Promise.all([...this.#running.values()].map(({ ended }) => ended));
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      this.#waker = new AbortController();
      try {
        await this.#look();
        this.#reading.clear();
        await pause(LOOK_MS, AbortSignal.any([signal, this.#waker.signal]));
      } catch (error) {
        // Nothing wakes it earlier: the database would be asked as fast as it refuses.
        await pause(this.#reading.note(error), signal);
      }
    }
  }

  async #look(): Promise<void> {
    const { db, now, random, reserve } = this.#options;
    // What no message lacks any more makes room at once.
    for (const hash of await listUnlacked(db, [...this.#running.keys()]))
      this.#running.get(hash)?.gone.abort();
    if (!reserve.hasRoom) return;
    const free = IPFS_LIMITS.parallelPins - (this.#running.size - this.#countRunning('keeper'));
    if (free === 0 || PENDING.some((sort) => !this.#mayBegin(sort))) await this.#beginKeepers();
    if (free === 0) return;
    const held = this.#listHeld();
    const sorts = PENDING.filter((sort) => this.#mayBegin(sort));
    const by = random() < 1 - LOT_PART ? 'tries' : 'lot';
    const which = { nowMs: now(), postponedMaxMs: POSTPONED_MAX_MS, sorts, by } as const;
    const due = sorts.length > 0 ? await listDue(db, which, free, held) : [];
    for (const wanted of due) if (this.#mayBegin(sortOf(wanted))) this.#begin(wanted, sortOf(wanted));
    if (due.length < free) this.#beginMissed(held);
  }

  #listHeld(): string[] {
    return [...this.#running.keys(), ...this.#rests.list()];
  }

  #countRunning(sort: Sort): number {
    return [...this.#running.values()].filter((one) => one.sort === sort).length;
  }

  /** Called where others leave no place or no try. */
  async #beginKeepers(): Promise<void> {
    const { db, now } = this.#options;
    const nowMs = now();
    const restMs = this.#keepersNextMs - nowMs;
    // Longer than any rest: the clock has been set back since.
    if ((restMs > 0 && restMs <= KEEPER_LOOK_MS) || !this.#mayBegin('keeper')) return;
    const keepersSince = (nowMs - KEEPER_MS) / 1_000;
    const free = SHARES.keeper.parallel - this.#countRunning('keeper');
    const which = { nowMs, postponedMaxMs: POSTPONED_MAX_MS, keepersSince } as const;
    const due = await listDue(db, which, free, this.#listHeld());
    if (due.length === 0) this.#keepersNextMs = nowMs + KEEPER_LOOK_MS;
    for (const wanted of due) if (this.#mayBegin('keeper')) this.#begin(wanted, 'keeper');
  }

  #mayBegin(sort: Sort): boolean {
    return (
      this.#countRunning(sort) < SHARES[sort].parallel && this.#misses[sort].waitMs(this.#options.now()) === 0
    );
  }

  /** One of those for which messages were rejected, where it may be asked for. */
  #beginMissed(except: readonly string[]): void {
    const { missed } = this.#options;
    if (!this.#mayBegin('missed')) return;
    for (const hash of missed?.names ?? []) {
      if (except.includes(hash) || this.#running.has(hash)) continue;
      if (this.#vain.mayTry(hash)) {
        this.#begin({ hash, attempts: 0 }, 'missed');
        return;
      }
      missed?.skip(hash);
    }
  }

  #begin(wanted: WantedFile, sort: Sort): void {
    const gone = new AbortController();
    this.#misses[sort].take();
    const fetching =
      sort === 'missed'
        ? this.#fetchMissed(wanted.hash, gone.signal)
        : this.#fetch(wanted, sort, gone.signal);
    const ended = fetching
      .then(() => {
        this.#rests.end(wanted.hash);
        this.#noting.clear();
      })
      .catch((error: unknown) => {
        this.#rests.note(wanted.hash);
        this.#noting.note(error);
      })
      .finally(() => {
        this.#running.delete(wanted.hash);
        this.wake();
      });
    this.#running.set(wanted.hash, { ended, gone, sort });
  }

  async #fetch(wanted: WantedFile, sort: Sort, gone: AbortSignal): Promise<void> {
    const { db, now, random, tryMs } = this.#options;
    const { hash, attempts } = wanted;
    const became = await this.#tryIf(() => isAwaited(db, hash), hash, sort, gone, tryMs);
    if (became === 'stopped') return;
    if (became === 'here' || became === 'gone') return await endWant(db, hash);
    await postponeWant(db, hash, now() + retryAfterMs(attempts, random()), became);
  }

  async #fetchMissed(hash: string, gone: AbortSignal): Promise<void> {
    const { db, files, tryMs, missed } = this.#options;
    const isLacked = async () => (await listUnlacked(db, [hash])).length === 0;
    const became = await this.#tryIf(isLacked, hash, 'missed', gone, Math.min(tryMs, MISSED_TRY_MS));
    if (became === 'stopped') return;
    if (became === 'here') {
      this.#vain.end(hash);
      missed?.note(hash, true);
      return;
    }
    if (became === 'gone' || !isVain(became)) missed?.skip(hash);
    else {
      this.#vain.note(hash, FINAL_CODES.includes(became.code));
      missed?.note(hash, false);
    }
    // Whoever withholds a part of a file has nothing of the disk, however often it is tried.
    await files.abandon(parseCid(hash));
  }

  /** Tries it where it is lacked. What is not in vain gives its try back, also where the database does not say whether it is lacked. */
  async #tryIf(
    isLacked: () => Promise<boolean>,
    hash: string,
    sort: Sort,
    gone: AbortSignal,
    tryMs: number,
  ): Promise<Became> {
    let became: Became = 'gone';
    try {
      if (await isLacked()) became = await this.#try(hash, gone, tryMs);
      return became;
    } finally {
      if (!isVain(became)) this.#misses[sort].giveBack();
    }
  }

  /** @returns why it failed, where it did */
  async #try(hash: string, gone: AbortSignal, tryMs: number): Promise<Became> {
    const { files, limitBytes } = this.#options;
    const stop = this.#stop.signal;
    const startMs = performance.now();
    try {
      const signal = AbortSignal.any([stop, gone, AbortSignal.timeout(tryMs)]);
      await files.pin(parseCid(hash), { limitBytes, signal });
      this.#counts.fetched++;
      return 'here';
    } catch (error) {
      if (stop.aborted) return 'stopped';
      if (gone.aborted) return 'gone';
      this.#counts.failed++;
      const { isForeseen, code, message } = reasonOfTry(error);
      if (!isForeseen) this.#fetching.note(error);
      return { code, message };
    } finally {
      this.#counts.durationMs += performance.now() - startMs;
    }
  }
}
