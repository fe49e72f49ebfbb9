import { type Logger, pause } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import type { Kysely } from 'kysely';
import type { Schema } from '../db/schema.ts';
import { endWant, isAwaited, listDue, postponeWant, type WantedFile } from '../files/wanted.ts';
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

/** Milliseconds until the next try: anything up to a bound that doubles (facts of deployed nodes). */
export const retryAfterMs = (attempts: number, random: number): number =>
  Math.ceil(1_000 * (0.1 + random * Math.min(2 ** Math.min(attempts, 30), IPFS_LIMITS.retryMaxSeconds)));

/**
 * Fetches the files that pending messages lack, several at the same time, and each again and again until it is here or
 * its messages are not pending any more: how long that is, is the pipeline's pending horizon.
 */
export function startFetcher(options: FetcherOptions): Fetcher {
  const { db, files, limitBytes, tryMs, now, random = Math.random, log } = options;
  const stop = new AbortController();
  const running = new Map<string, Promise<void>>();
  const counts: FetchCounts = { fetched: 0, failed: 0, durationMs: 0 };
  let waker = new AbortController();

  const fetchOne = async ({ hash, attempts }: WantedFile) => {
    if (!(await isAwaited(db, hash))) return endWant(db, hash);
    const startMs = performance.now();
    try {
      await files.pin(parseCid(hash), {
        limitBytes,
        signal: AbortSignal.any([stop.signal, AbortSignal.timeout(tryMs)]),
      });
      counts.fetched++;
      await endWant(db, hash);
    } catch (error) {
      if (stop.signal.aborted) return;
      counts.failed++;
      const { code, message } =
        error instanceof AppError ? error : new AppError('IPFS_TIMEOUT', 'the fetch took too long');
      if (!(error instanceof AppError)) log.warn({ err: error, hash }, 'a file of IPFS could not be fetched');
      await postponeWant(db, hash, now() + retryAfterMs(attempts, random()), { code, message });
    } finally {
      counts.durationMs += performance.now() - startMs;
    }
  };

  const look = async () => {
    const free = IPFS_LIMITS.parallelPins - running.size;
    if (free === 0) return;
    for (const wanted of await listDue(db, now(), free, [...running.keys()])) {
      const fetching = fetchOne(wanted)
        .catch((error: unknown) => log.warn({ err: error }, 'a wanted file could not be noted'))
        .finally(() => {
          running.delete(wanted.hash);
          waker.abort();
        });
      running.set(wanted.hash, fetching);
    }
  };

  const loop = (async () => {
    while (!stop.signal.aborted) {
      waker = new AbortController();
      await look().catch((error: unknown) => log.warn({ err: error }, 'wanted files could not be read'));
      await pause(LOOK_MS, AbortSignal.any([stop.signal, waker.signal]));
    }
  })();

  return {
    counts,
    wake: () => waker.abort(),
    async [Symbol.asyncDispose]() {
      stop.abort();
      await loop;
      await Promise.all(running.values());
    },
  };
}
