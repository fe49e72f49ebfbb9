/** Results are kept for this long, in parts of a quarter of an hour. */
export const BUCKET_MS = 900_000;
export const KEPT_MS = 7 * 86_400_000;
const BUCKETS_KEPT = KEPT_MS / BUCKET_MS + 1;
const FAILURES_KEPT = 100;

export interface Result {
  /** Milliseconds since 1970. */
  readonly atMs: number;
  readonly isOnline: boolean;
  readonly latencyUs: number | null;
  readonly statusCode: number | null;
  readonly issue: string | null;
}

export interface Bucket {
  /** Checks, and how many of them failed. */
  hits: number;
  failures: number;
  /** Of those that did not fail. */
  latencyUs: number;
}

export interface FailedCheck {
  readonly atMs: number;
  readonly issue: string;
  readonly statusCode: number | null;
}

/** A history as it is written to disk. */
export interface HistoryRecord {
  readonly buckets: readonly (readonly [number, number, number, number])[];
  readonly failures: readonly FailedCheck[];
  readonly last: Result | null;
  readonly totals: Totals;
}

export interface Totals {
  readonly hits: number;
  readonly failures: number;
  readonly firstMs: number | null;
  readonly lastSuccessMs: number | null;
  readonly lastFailureMs: number | null;
}

const NOTHING: Totals = { hits: 0, failures: 0, firstMs: null, lastSuccessMs: null, lastFailureMs: null };

const bucketOf = (timeMs: number) => Math.floor(timeMs / BUCKET_MS);

/** What became of the checks of one service. */
export class History {
  #buckets = new Map<number, Bucket>();
  #failures: FailedCheck[] = [];
  #totals: Totals = NOTHING;
  #last: Result | null = null;

  get last(): Result | null {
    return this.#last;
  }

  get totals(): Totals {
    return this.#totals;
  }

  /** Newest first. */
  get failures(): readonly FailedCheck[] {
    return this.#failures.toReversed();
  }

  add(result: Result): void {
    const { atMs, isOnline, latencyUs, issue, statusCode } = result;
    const key = bucketOf(atMs);
    const bucket = this.#buckets.get(key) ?? { hits: 0, failures: 0, latencyUs: 0 };
    this.#buckets.set(key, bucket);
    bucket.hits++;
    if (isOnline) bucket.latencyUs += latencyUs ?? 0;
    else {
      bucket.failures++;
      this.#failures = [...this.#failures, { atMs, issue: issue ?? '', statusCode }].slice(-FAILURES_KEPT);
    }
    const { hits, failures, firstMs, lastSuccessMs, lastFailureMs } = this.#totals;
    this.#totals = {
      hits: hits + 1,
      failures: failures + Number(!isOnline),
      firstMs: firstMs ?? atMs,
      lastSuccessMs: isOnline ? atMs : lastSuccessMs,
      lastFailureMs: isOnline ? lastFailureMs : atMs,
    };
    this.#last = result;
    if (this.#buckets.size > BUCKETS_KEPT) this.#prune(key);
  }

  /** All checks of the last `spanMs`, the quarter of an hour in which it began included. */
  sum(nowMs: number, spanMs: number): Bucket {
    const first = bucketOf(nowMs - spanMs);
    const total: Bucket = { hits: 0, failures: 0, latencyUs: 0 };
    for (const [key, bucket] of this.#buckets) {
      if (key < first) continue;
      total.hits += bucket.hits;
      total.failures += bucket.failures;
      total.latencyUs += bucket.latencyUs;
    }
    return total;
  }

  /** Quarters of an hour with checks, oldest first, by the time at which each begins. */
  list(): { startMs: number; bucket: Readonly<Bucket> }[] {
    return [...this.#buckets]
      .sort(([a], [b]) => a - b)
      .map(([key, bucket]) => ({ startMs: key * BUCKET_MS, bucket }));
  }

  toRecord(): HistoryRecord {
    return {
      buckets: [...this.#buckets].map(([key, { hits, failures, latencyUs }]) => [
        key,
        hits,
        failures,
        latencyUs,
      ]),
      failures: this.#failures,
      last: this.#last,
      totals: this.#totals,
    };
  }

  static fromRecord({ buckets, failures, last, totals }: HistoryRecord): History {
    const history = new History();
    history.#buckets = new Map(
      buckets.map(([key, hits, failed, latencyUs]) => [key, { hits, failures: failed, latencyUs }]),
    );
    history.#failures = [...failures];
    history.#last = last;
    history.#totals = totals;
    return history;
  }

  #prune(newest: number): void {
    for (const key of this.#buckets.keys()) if (key <= newest - BUCKETS_KEPT) this.#buckets.delete(key);
  }
}

/** The part of the checks that did not fail, in percent; 0 where there was none. */
export const percentOnline = ({ hits, failures }: Bucket) =>
  hits === 0 ? 0 : Math.round(((hits - failures) / hits) * 10_000) / 100;

/** The mean latency of the checks that did not fail, microseconds. */
export const meanLatency = ({ hits, failures, latencyUs }: Bucket) =>
  hits === failures ? 0 : Math.round(latencyUs / (hits - failures));
