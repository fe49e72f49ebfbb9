import { asDatabaseError, BOUNDLESS, type DiskReserve } from '@skerry/database';
import { Failures, type Logger, pause, Rests } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import type { Kysely } from 'kysely';
import {
  endWant,
  isAwaited,
  listDue,
  listUnawaited,
  postponeWant,
  type WantedFile,
} from '../files/wanted.ts';
import type { Schema, VerdictReason } from '../schema.ts';
import { parseCid } from './cid.ts';
import type { IpfsFiles } from './ipfs-files.ts';
import { IPFS_LIMITS } from './limits.ts';

const LOOK_MS = 500;

export interface FetcherOptions {
  readonly db: Kysely<Schema>;
  readonly files: IpfsFiles;
  readonly limitBytes: number;
  /** One try may take so long as a whole. */
  readonly tryMs: number;
  readonly now: () => number;
  readonly random?: () => number;
  readonly reserve?: DiskReserve;
  readonly log: Logger;
}

export interface FetchCounts {
  fetched: number;
  failed: number;
  durationMs: number;
}

export interface Fetcher extends AsyncDisposable {
  readonly counts: Readonly<FetchCounts>;
  /** A file may be wanted that was not: looks at once. */
  wake(): void;
}

/** The first try follows this soon, whatever the random number. */
const RETRY_MIN_MS = 100;

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

/**
 * Fetches the files that pending messages lack, several at the same time, and each again and again until it is here or
 * its messages are not pending any more: how long that is, is the pipeline's pending horizon.
 */
export function startFetcher(options: FetcherOptions): Fetcher {
  const { db, files, limitBytes, tryMs, now, random = Math.random, reserve = BOUNDLESS, log } = options;
  const stop = new AbortController();
  const running = new Map<string, { readonly ended: Promise<void>; readonly gone: AbortController }>();
  const counts: FetchCounts = { fetched: 0, failed: 0, durationMs: 0 };
  /** Those whose failure could not be noted in the table. */
  const rests = new Rests({ now, random });
  const reading = new Failures({ log, what: 'wanted files could not be read; retrying', random });
  const noting = new Failures({ log, what: 'a wanted file could not be recorded', random });
  const fetching = new Failures({
    log,
    what: 'an IPFS file could not be fetched; retrying',
    random,
  });
  let waker = new AbortController();

  const fetchOne = async ({ hash, attempts }: WantedFile, gone: AbortSignal) => {
    if (!(await isAwaited(db, hash))) return endWant(db, hash);
    const startMs = performance.now();
    try {
      await files.pin(parseCid(hash), {
        limitBytes,
        signal: AbortSignal.any([stop.signal, gone, AbortSignal.timeout(tryMs)]),
      });
      counts.fetched++;
      await endWant(db, hash);
    } catch (error) {
      if (stop.signal.aborted) return;
      if (gone.aborted) return await endWant(db, hash);
      counts.failed++;
      const { isForeseen, code, message } = reasonOfTry(error);
      if (!isForeseen) fetching.note(error);
      await postponeWant(db, hash, now() + retryAfterMs(attempts, random()), { code, message });
    } finally {
      counts.durationMs += performance.now() - startMs;
    }
  };

  const look = async () => {
    if (running.size > 0) {
      // What nobody waits for any more makes room at once.
      for (const hash of await listUnawaited(db, [...running.keys()])) running.get(hash)?.gone.abort();
    }
    const free = IPFS_LIMITS.parallelPins - running.size;
    if (free === 0 || !reserve.hasRoom) return;
    for (const wanted of await listDue(db, now(), free, [...running.keys(), ...rests.list()])) {
      const gone = new AbortController();
      const ended = fetchOne(wanted, gone.signal)
        .then(() => {
          rests.end(wanted.hash);
          noting.clear();
        })
        .catch((error: unknown) => {
          rests.note(wanted.hash);
          noting.note(error);
        })
        .finally(() => {
          running.delete(wanted.hash);
          waker.abort();
        });
      running.set(wanted.hash, { ended, gone });
    }
  };

  const loop = (async () => {
    while (!stop.signal.aborted) {
      waker = new AbortController();
      try {
        await look();
        reading.clear();
        await pause(LOOK_MS, AbortSignal.any([stop.signal, waker.signal]));
      } catch (error) {
        // Nothing wakes it earlier: the database would be asked as fast as it refuses.
        await pause(reading.note(error), stop.signal);
      }
    }
  })();

  return {
    counts,
    wake: () => waker.abort(),
    async [Symbol.asyncDispose]() {
      stop.abort();
      await loop;
      await Promise.all([...running.values()].map(({ ended }) => ended));
    },
  };
}
