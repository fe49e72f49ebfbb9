/** Results are kept for this long, in parts of a quarter of an hour. */
export const BUCKET_MS = 900_000;
export const KEPT_MS = 7 * 86_400_000;
const BUCKETS_KEPT = KEPT_MS / BUCKET_MS + 1;
const FAILURES_KEPT = 100;
const DAY_MS = 86_400_000;
/** Days are kept for longer: people ask what a year was like. */
export const DAYS_KEPT = 366;

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

/** A number of a bucket or a day, and what is in it. */
type Row = readonly [number, number, number, number];

/** A history as it is written to disk. */
export interface HistoryRecord {
  readonly buckets: readonly Row[];
  /** Left out by versions before this field. */
  readonly days?: readonly Row[];
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
const dayOf = (timeMs: number) => Math.floor(timeMs / DAY_MS);

const rowOf = ([key, { hits, failures, latencyUs }]: readonly [number, Bucket]): Row =>
  [key, hits, failures, latencyUs] as const;
const bucketsOf = (rows: readonly Row[]) =>
  new Map(rows.map(([key, hits, failures, latencyUs]) => [key, { hits, failures, latencyUs }]));

/** Counts a check in its part. */
function count(parts: Map<number, Bucket>, key: number, { isOnline, latencyUs }: Result): void {
  const bucket = parts.get(key) ?? { hits: 0, failures: 0, latencyUs: 0 };
  parts.set(key, bucket);
  bucket.hits++;
  if (isOnline) bucket.latencyUs += latencyUs ?? 0;
  else bucket.failures++;
}

/**
 * Makes room for the part of now: one that a clock ahead of this one left goes first, then the oldest. One for one, so that a
 * wrong clock costs no more parts than it filled, whether it was ahead or behind.
 */
function prune(parts: Map<number, Bucket>, now: number, kept: number): void {
  while (parts.size > kept) {
    const keys = [...parts.keys()];
    const latest = Math.max(...keys);
    parts.delete(latest > now ? latest : Math.min(...keys));
  }
}

/** What there is, oldest first, by the time at which each begins. */
const listed = (parts: Map<number, Bucket>, lengthMs: number) =>
  [...parts].sort(([a], [b]) => a - b).map(([key, bucket]) => ({ startMs: key * lengthMs, bucket }));

/** A sum as it is until the next quarter of an hour begins, by the numbers of the first and the last bucket in it. */
interface Sum {
  readonly first: number;
  readonly last: number;
  readonly total: Bucket;
}

/** What became of the checks of one service. */
export class History {
  /** By span. Whoever asks has ten thousand services summed up, each of hundreds of buckets. */
  readonly #sums = new Map<number, Sum>();
  #buckets = new Map<number, Bucket>();
  #days = new Map<number, Bucket>();
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
    const { atMs, isOnline, issue, statusCode } = result;
    const [key, day] = [bucketOf(atMs), dayOf(atMs)];
    this.#sums.clear();
    count(this.#buckets, key, result);
    count(this.#days, day, result);
    if (!isOnline)
      this.#failures = [...this.#failures, { atMs, issue: issue ?? '', statusCode }].slice(-FAILURES_KEPT);
    const { hits, failures, firstMs, lastSuccessMs, lastFailureMs } = this.#totals;
    this.#totals = {
      hits: hits + 1,
      failures: failures + Number(!isOnline),
      firstMs: firstMs ?? atMs,
      lastSuccessMs: isOnline ? atMs : lastSuccessMs,
      lastFailureMs: isOnline ? lastFailureMs : atMs,
    };
    this.#last = result;
    prune(this.#buckets, key, BUCKETS_KEPT);
    prune(this.#days, day, DAYS_KEPT);
  }

  /** All checks of the last `spanMs`, the quarter of an hour in which it began included; what is dated later counts when it comes. */
  sum(nowMs: number, spanMs: number): Readonly<Bucket> {
    const [first, last] = [bucketOf(nowMs - spanMs), bucketOf(nowMs)];
    const known = this.#sums.get(spanMs);
    if (known?.first === first && known.last === last) return known.total;
    const total: Bucket = { hits: 0, failures: 0, latencyUs: 0 };
    for (const [key, bucket] of this.#buckets) {
      if (key < first || key > last) continue;
      total.hits += bucket.hits;
      total.failures += bucket.failures;
      total.latencyUs += bucket.latencyUs;
    }
    this.#sums.set(spanMs, { first, last, total });
    return total;
  }

  /** Quarters of an hour with checks, oldest first, by the time at which each begins. */
  list(): { startMs: number; bucket: Readonly<Bucket> }[] {
    return listed(this.#buckets, BUCKET_MS);
  }

  /** Days (UTC) with checks, up to a year of them, oldest first. */
  listDays(): { startMs: number; bucket: Readonly<Bucket> }[] {
    return listed(this.#days, DAY_MS);
  }

  toRecord(): HistoryRecord {
    return {
      buckets: [...this.#buckets].map(rowOf),
      days: [...this.#days].map(rowOf),
      failures: this.#failures,
      last: this.#last,
      totals: this.#totals,
    };
  }

  static fromRecord({ buckets, days, failures, last, totals }: HistoryRecord): History {
    const history = new History();
    history.#buckets = bucketsOf(buckets);
    history.#days = days ? bucketsOf(days) : history.#daysOfBuckets();
    history.#failures = [...failures];
    history.#last = last;
    history.#totals = totals;
    return history;
  }

  /** What an older version kept: the days of the last week. */
  #daysOfBuckets(): Map<number, Bucket> {
    const days = new Map<number, Bucket>();
    for (const [key, { hits, failures, latencyUs }] of this.#buckets) {
      const day = dayOf(key * BUCKET_MS);
      const sum = days.get(day) ?? { hits: 0, failures: 0, latencyUs: 0 };
      days.set(day, {
        hits: sum.hits + hits,
        failures: sum.failures + failures,
        latencyUs: sum.latencyUs + latencyUs,
      });
    }
    return days;
  }
}

/** The part of the checks that did not fail, in percent; 0 where there was none. */
export const percentOnline = ({ hits, failures }: Readonly<Bucket>) =>
  hits === 0 ? 0 : Math.round(((hits - failures) / hits) * 10_000) / 100;

/** The mean latency of the checks that did not fail, microseconds. */
export const meanLatency = ({ hits, failures, latencyUs }: Readonly<Bucket>) =>
  hits === failures ? 0 : Math.round(latencyUs / (hits - failures));
