import { type Kysely, sql } from 'kysely';
import type { Schema } from '../../store/schema.ts';

/** After this, counted by the database, another process may lead. */
const LEASE_MS = 5_000;
/** Whoever leads stops this much before, counted by its own machine: what it has begun has that long to end. */
const MARGIN_MS = 1_500;
const NOT_RENEWED = `the database was not reached within ${LEASE_MS - MARGIN_MS} ms`;

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
 * The right to lead, of one process at a time: a row that is renewed every second. Not an advisory lock, which belongs to a
 * session: PgBouncer shares those among clients.
 */
export class Lease {
  readonly #options: LeaseOptions;
  #held: AbortController | undefined;
  #callOff: () => void = () => {};
  #waiting: (() => void)[] = [];
  /** Not taken before, by this machine's uptime. */
  #restsUntilMs = 0;

  constructor(options: LeaseOptions) {
    this.#options = options;
  }

  /** Ends when this process leads no more, with an AbortError that says why; undefined where it does not lead. */
  get held(): AbortSignal | undefined {
    return this.#held?.signal;
  }

  /** Takes it where it is free, or keeps it. */
  async renew(): Promise<void> {
    const { db, name, holder, isAlone = false } = this.#options;
    const askedMs = performance.now();
    if (askedMs < this.#restsUntilMs) return;
    const { rows } = await sql`
      insert into leases (name, holder, until)
      values (${name}, ${holder}, clock_timestamp() + make_interval(secs => ${LEASE_MS / 1000}))
      on conflict (name) do update set holder = excluded.holder, until = excluded.until
      where leases.holder = excluded.holder or leases.until < clock_timestamp()
      returning holder`.execute(db);
    if (rows.length === 0) return this.#lose('another process leads');
    if (!isAlone && !this.#mayLeadSince(askedMs)) return this.#lose(NOT_RENEWED);
    if (this.#held) return;
    this.#held = new AbortController();
    for (const tell of this.#waiting.splice(0)) tell();
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
    this.#restsUntilMs = performance.now() + restMs;
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

  #lose(why: string): void {
    this.#callOff();
    this.#held?.abort(new DOMException(why, 'AbortError'));
    this.#held = undefined;
  }
}
