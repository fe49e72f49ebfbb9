import { AppError, type NetworkEvent } from '@skerry/protocol';
import type { EventKind } from '@skerry/protocol/api/core/events';
import { type Kysely, type Selectable, sql } from 'kysely';
import type { Schema } from '../../store/schema.ts';
import { LINEAGE } from '../../store/write-lock.ts';

/** While anybody waits, the database is asked this often whether something came, for all of them at once. */
const POLL_MS = 1_000;
/** Between two looks for what another process has written. */
export const LOOK_MS = 100;

/** Events that are looked through for those of some kinds, in one page. */
const SCANNED_EVENTS = 10_000;

export interface EventPage {
  readonly events: readonly NetworkEvent[];
  /** Up to where was looked. */
  readonly cursor: string;
}

/** What is read of the log. */
export interface EventReads {
  /** Where the log ends now. */
  lastCursor(): Promise<string>;
  /** Throws INVALID_CURSOR for a number that no event has yet: whoever waits after it would miss those that come before. */
  checkGiven(seq: number): Promise<void>;
  /** Events after the cursor, oldest first. */
  read(cursor: string, limit: number): Promise<NetworkEvent[]>;
  /** Those of some kinds among the events after the cursor: as many as fit, or are found in a stretch of bounded length. */
  readKinds(cursor: string, limit: number, kinds: readonly EventKind[]): Promise<EventPage>;
}

/** The numbered event log, as readers see it. A cursor is the number of the last event seen. */
export interface EventLog extends EventReads {
  /** The same log, read from this database. */
  askedIn(db: Kysely<Schema>): EventReads;
  /**
   * Resolves when something may have been written, when the signal ends, or after so long for whoever has something else to look at.
   * @param wakes as they were before the caller looked: nothing that was written since is slept through
   */
  waitForMore(wakes: number, signal: AbortSignal, atMostMs?: number): Promise<void>;
  /** The largest number that this process has told anybody. */
  readonly seen: number;
  /** Tells waiting readers to look. */
  wake(): void;
  /** Wakes those who wait where another process has written since the last look. Costs nothing while nobody waits. */
  look(): Promise<void>;
  /** How often those who wait were woken. */
  readonly wakes: number;
}

/** Throws INVALID_CURSOR. */
export function parseCursor(cursor: string): number {
  const seq = Number(cursor);
  if (!/^[0-9]{1,15}$/.test(cursor) || !Number.isSafeInteger(seq)) {
    throw new AppError(
      'INVALID_CURSOR',
      'a cursor of events is the number of an event, as an event or a list has it; 0 is the beginning, and latest the newest event',
    );
  }
  return seq;
}

const eventOf = ({ seq, kind, time_ms, data, cause }: Selectable<Schema['events']>) =>
  ({
    ...{ cursor: String(seq), kind, time_ms, data },
    ...(kind === 'instance' ? { cause } : {}),
  }) as NetworkEvent;

interface Stretch {
  readonly from: number;
  /** Where the log ends. */
  readonly end: number;
  readonly limit: number;
  readonly kinds: readonly EventKind[];
}

/** Where a stretch ends. Numbers may have been passed over, as after a failover: it begins with the next event. */
async function endOf(db: Kysely<Schema>, { from, end }: Pick<Stretch, 'from' | 'end'>): Promise<number> {
  if (end - from <= SCANNED_EVENTS) return end;
  const next = await db
    .selectFrom('events')
    .select('seq')
    .where('seq', '>', from)
    .orderBy('seq')
    .limit(1)
    .executeTakeFirst();
  return next ? Math.min(end, next.seq - 1 + SCANNED_EVENTS) : end;
}

async function readKinds(db: Kysely<Schema>, { from, end, limit, kinds }: Stretch): Promise<EventPage> {
  const to = await endOf(db, { from, end });
  const rows = await db
    .selectFrom('events')
    .selectAll()
    .where('seq', '>', from)
    .where('seq', '<=', to)
    .where('kind', 'in', kinds)
    .orderBy('seq')
    .limit(limit)
    .execute();
  const looked = rows.length === limit ? rows.at(-1)!.seq : Math.max(from, to);
  return { events: rows.map(eventOf), cursor: String(looked) };
}

/** Those who wait for events. */
class Waiting {
  readonly #poll: () => Promise<void>;
  #readers = new Set<() => void>();
  #polling: NodeJS.Timeout | undefined;
  wakes = 0;

  /** @param poll wakes them where something came; asked now and then while anybody waits */
  constructor(poll: () => Promise<void>) {
    this.#poll = poll;
  }

  get isEmpty(): boolean {
    return this.#readers.size === 0;
  }

  wait(wakes: number, signal: AbortSignal, atMostMs?: number): Promise<void> {
    if (wakes !== this.wakes) return Promise.resolve();
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        signal.removeEventListener('abort', done);
        this.#readers.delete(done);
        if (this.isEmpty) this.#rest();
        resolve();
      };
      const timer = atMostMs === undefined ? undefined : setTimeout(done, atMostMs);
      signal.addEventListener('abort', done);
      this.#readers.add(done);
      this.#polling ??= this.#pollLater();
      if (signal.aborted) done();
    });
  }

  wake(): void {
    this.wakes++;
    const readers = this.#readers;
    this.#readers = new Set();
    for (const done of readers) done();
  }

  #pollLater(): NodeJS.Timeout {
    const timer = setTimeout(async () => {
      // Where that fails each finds out by itself why, and rests.
      await this.#poll().catch(() => this.wake());
      // Those who were woken may wait again, and have begun anew.
      if (this.#polling === timer) this.#polling = this.isEmpty ? undefined : this.#pollLater();
    }, POLL_MS);
    return timer;
  }

  #rest(): void {
    clearTimeout(this.#polling);
    this.#polling = undefined;
  }
}

/** The largest number that this process has told anybody. */
class Seen {
  seq = 0;

  note(seq: number): void {
    this.seq = Math.max(this.seq, seq);
  }
}

async function readLast(db: Kysely<Schema>, seen: Seen): Promise<number> {
  const row = await db.selectFrom('event_counter').select('last_seq').executeTakeFirstOrThrow();
  seen.note(row.last_seq);
  return row.last_seq;
}

function readsOf(db: Kysely<Schema>, seen: Seen): EventReads {
  const lastCursor = async () => String(await readLast(db, seen));
  return {
    lastCursor,
    async checkGiven(seq) {
      if (seq <= seen.seq || seq <= (await readLast(db, seen))) return;
      // Numbers that another server gave are passed over with the first event of this one.
      const { rows } = await sql<{ is_same: boolean }>`
        select timeline = ${sql.raw(LINEAGE)} as is_same from event_counter`.execute(db);
      if (!rows[0]!.is_same) return;
      throw new AppError(
        'INVALID_CURSOR',
        `no event has the number ${seq} yet: the cursor comes from another node, or from before this one began anew; begin with cursor=0, or with cursor=latest`,
      );
    },
    async read(cursor, limit) {
      const rows = await db
        .selectFrom('events')
        .selectAll()
        .where('seq', '>', parseCursor(cursor))
        .orderBy('seq')
        .limit(limit)
        .execute();
      seen.note(rows.at(-1)?.seq ?? 0);
      return rows.map(eventOf);
    },
    async readKinds(cursor, limit, kinds) {
      // Asked first: what comes later is not passed over.
      const end = Number(await lastCursor());
      return readKinds(db, { from: parseCursor(cursor), end, limit, kinds });
    },
  };
}

/** @param db from which everybody is told who does not name another one */
export function createEventLog(db: Kysely<Schema>): EventLog {
  const seen = new Seen();
  let lookedAt = 0;
  const look = async () => {
    if (waiting.isEmpty) return;
    const last = await readLast(db, seen);
    if (last !== lookedAt) waiting.wake();
    lookedAt = last;
  };
  const waiting = new Waiting(look);
  return {
    ...readsOf(db, seen),
    askedIn: (other) => readsOf(other, seen),
    get seen() {
      return seen.seq;
    },
    get wakes() {
      return waiting.wakes;
    },
    look,
    waitForMore: (wakes, signal, atMostMs) => waiting.wait(wakes, signal, atMostMs),
    wake: () => waiting.wake(),
  };
}
