import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { Schema } from '../../store/schema.ts';

/** After this, counted by the database, another process may lead. */
const LEASE_MS = 5_000;
/** Whoever leads stops this much before, counted by its own machine: what it has begun has that long to end. */
const MARGIN_MS = 1_500;
const NOT_RENEWED = `the database was not reached within ${LEASE_MS - MARGIN_MS} ms`;

const untilOf = (leases: number) =>
  sql`clock_timestamp() + make_interval(secs => ${sql.lit((leases * LEASE_MS) / 1000)})`;

/**
 * Takes or keeps those of these leases that are free or the holder's, and returns their names. One that lasts for longer than any lease
 * was given by a clock that was set back since, or that another server had: whoever holds it renews it within a second.
 */
export const takeLeases = (names: readonly string[], holder: string): RawBuilder<{ name: string }> => sql<{
  name: string;
}>`
  insert into leases (name, holder, until)
  select name, ${holder}::uuid, ${untilOf(1)} from unnest(${names}::text[]) as name order by name
  on conflict (name) do update set holder = excluded.holder, until = excluded.until
  where leases.holder = excluded.holder or leases.until < clock_timestamp() or leases.until > ${untilOf(2)}
  returning name`;

/** Runs something after so many milliseconds, unless the function that it returns is called before. */
export type Later = (milliseconds: number, run: () => void) => () => void;

const laterByTimer: Later = (milliseconds, run) => {
  const timer = setTimeout(run, milliseconds).unref();
  return () => clearTimeout(timer);
};

export interface LeaseOptions {
  readonly db: Kysely<Schema>;
  readonly name: string;
  readonly holder: string;
  /** Nobody else can use the database, so nobody leads where this process is late. */
  readonly isAlone?: boolean | undefined;
  readonly later?: Later | undefined;
}

/**
 * The right to lead, of one process at a time: a row that is renewed every second (member.ts). Not an advisory lock, which belongs to a
 * session: PgBouncer shares those among clients.
 */
export class Lease {
  readonly #options: LeaseOptions;
  #held: AbortController | undefined;
  #callOff: () => void = () => {};
  #waiting: (() => void)[] = [];
  /** Given back then, and not taken before; by this machine's uptime. */
  #passedMs = Number.NEGATIVE_INFINITY;
  #restsUntilMs = Number.NEGATIVE_INFINITY;

  constructor(options: LeaseOptions) {
    this.#options = options;
  }

  /** Ends when this process leads no more, with an AbortError that says why; undefined where it does not lead. */
  get held(): AbortSignal | undefined {
    return this.#held?.signal;
  }

  /** Whether this process leaves it to others at the moment. */
  get rests(): boolean {
    return performance.now() < this.#restsUntilMs;
  }

  /**
   * Takes note of what the database said.
   * @param askedMs when it was asked, by this machine's uptime
   */
  hear(isTaken: boolean, askedMs: number): void {
    const { isAlone = false } = this.#options;
    // The answer to what was asked before it was given back.
    if (askedMs < this.#passedMs) return;
    if (!isTaken) this.#lose('another process leads');
    else if (!isAlone && !this.#mayLeadSince(askedMs)) this.#lose(NOT_RENEWED);
    else this.#hold();
  }

  /** This process begins anew what it leads, when it has the lease again. */
  drop(why: string): void {
    this.#lose(why);
  }

  /** Resolves when this process leads, or when the signal ends. */
  async wait(signal: AbortSignal): Promise<AbortSignal | undefined> {
    while (!this.#held && !signal.aborted) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#waiting.push(resolve);
      signal.addEventListener('abort', () => resolve(), { once: true });
      await promise;
    }
    return this.held;
  }

  /** Another process may lead at once, and this one after a while, where no other does. */
  async pass(restMs: number): Promise<void> {
    this.#passedMs = performance.now();
    this.#restsUntilMs = this.#passedMs + restMs;
    this.#lose('its work cannot be done');
    const { db, name, holder } = this.#options;
    await sql`delete from leases where name = ${name} and holder = ${holder}`.execute(db);
  }

  /** Whether the lease holds, counted from the moment when it was asked for; then it is lost when its time is over. */
  #mayLeadSince(askedMs: number): boolean {
    const { later = laterByTimer } = this.#options;
    const leftMs = askedMs + LEASE_MS - MARGIN_MS - performance.now();
    this.#callOff();
    if (leftMs > 0) this.#callOff = later(leftMs, () => this.#lose(NOT_RENEWED));
    return leftMs > 0;
  }

  #hold(): void {
    if (this.#held) return;
    this.#held = new AbortController();
    for (const tell of this.#waiting.splice(0)) tell();
  }

  #lose(why: string): void {
    this.#callOff();
    this.#held?.abort(new DOMException(why, 'AbortError'));
    this.#held = undefined;
  }
}
