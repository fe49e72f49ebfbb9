import type { Logger } from '@skerry/kit';
import type { Kysely } from 'kysely';
import { raiseEvents, readChanges, readPlace, trimChanges } from '../../intake/pipeline/set-changes.ts';
import { follows, type SetChange, type SetPlace } from '../../intake/pipeline/set-place.ts';
import type { Committed, Move } from '../../intake/pipeline/statement.ts';
import type { KeptPlace } from '../../node/kept-place.ts';
import type { EventLog } from '../../notify/events/log.ts';
import type { Schema } from '../../store/schema.ts';
import type { NodeSet } from './node-set.ts';

export interface SetFollowerOptions {
  readonly db: Kysely<Schema>;
  readonly set: NodeSet;
  readonly events: Pick<EventLog, 'seen'>;
  /** Keeps how far the database has come for the next process; nobody does where left out. */
  readonly kept?: Pick<KeptPlace, 'hasLost' | 'note'> | undefined;
  readonly log: Logger;
}

/** Between looks at what others wrote, while this process writes nothing or nobody else does. */
export const LOOK_MS = 1_000;
/** Looks between deleting rows that everybody has read. */
const TRIM_EVERY = 30;
/** Rows of this process that wait for the one before them; a row has 2,000 messages at most. */
const AHEAD_MAX = 16;

/**
 * Keeps the set of messages in step with the database, whoever writes to it. What this process commits is followed at
 * once; what others did is read from the rows of changes. Where the database has lost what was followed (a standby without some of it
 * became the primary), the set is read anew, so that peers are asked for what is missing.
 */
export class SetFollower {
  readonly #options: SetFollowerOptions;
  /** What the set holds; undefined until it is read. */
  #place: SetPlace | undefined;
  #looks = 0;
  /** Rows of this process of which the one before is not followed yet, by its mark. */
  readonly #ahead = new Map<string | null, Pick<Committed, 'row' | 'moves'>>();
  /** Why the set is to be read anew: until that has succeeded. */
  #unread: 'deleted' | 'other' | undefined;
  /** How often the database turned out to have another history. */
  #losses = 0;

  constructor(options: SetFollowerOptions) {
    this.#options = options;
    if (options.kept?.hasLost) this.#losses++;
  }

  get set(): NodeSet {
    return this.#options.set;
  }

  get losses(): number {
    return this.#losses;
  }

  /** Reads all keys. One that failed may be called again. Throws OVERLOADED. */
  async load(): Promise<void> {
    const { db, set } = this.#options;
    this.#place = await readPlace(db);
    this.#ahead.clear();
    await set.load(db);
    this.#keep();
  }

  /** For the next process. */
  #keep(): void {
    const { events, kept } = this.#options;
    const place = this.#place!;
    kept?.note({ ...place, lastEvent: Math.max(place.lastEvent, events.seen) });
  }

  /**
   * A batch of this process is durable. One that is told before the batch that it follows, as where what a FORGET put in line is decided
   * while the next batch is committed, has its turn after that one.
   */
  committed({ row, moves }: Pick<Committed, 'row' | 'moves'>): void {
    if (this.#take(row, moves) || !this.#place || row.seq <= this.#place.seq) return;
    this.#ahead.set(row.after, { row, moves });
    const oldest = this.#ahead.keys().next();
    // What is dropped is read from the database.
    if (this.#ahead.size > AHEAD_MAX && !oldest.done) this.#ahead.delete(oldest.value);
  }

  /** False where others wrote before it, or the history is another one: `look` finds out. */
  #take(row: SetChange, moves: readonly Move[]): boolean {
    if (!this.#place || !follows(this.#place, row)) return false;
    let next: Pick<Committed, 'row' | 'moves'> | undefined = { row, moves };
    while (next && follows(this.#place, next.row)) {
      this.#options.set.follow(next.moves);
      this.#place = next.row;
      next = this.#ahead.get(next.row.mark);
      this.#ahead.delete(this.#place.mark);
    }
    this.#keep();
    return true;
  }

  /**
   * Follows what others wrote.
   * @returns whether the database had lost what was followed: the set was read anew, and may lack what peers have
   */
  async look(): Promise<boolean> {
    const { db } = this.#options;
    if (!this.#place) return false;
    if (this.#unread) return this.#read(this.#unread);
    if (++this.#looks % TRIM_EVERY === 0) await trimChanges(db);
    for (;;) {
      const next = await readChanges(db, this.#place);
      if (next.state !== 'here') return this.#readAnew(next.state);
      if (next.rows.length === 0) {
        this.#keep();
        return false;
      }
      for (const { moves, ...row } of next.rows) {
        // This process may have committed and followed it meanwhile.
        if (row.seq > this.#place.seq && !this.#take(row, moves)) return this.#readAnew('other');
      }
    }
  }

  async #readAnew(why: 'deleted' | 'other'): Promise<boolean> {
    const { db, set, events, log } = this.#options;
    const { seq, lastEvent } = this.#place!;
    const facts = { batches_followed: seq, messages_followed: set.index.size };
    if (why === 'other') {
      await raiseEvents(db, Math.max(lastEvent, events.seen));
      this.#losses++;
      log.error(
        facts,
        'the database has lost what it had said was durable, as when a standby that lagged behind becomes the primary; peers are asked for it',
      );
    } else
      log.warn(facts, 'this process is so long behind the others that it reads the set of messages anew');
    this.#unread = why;
    return this.#read(why);
  }

  /** One that failed is done again at the next look. */
  async #read(why: 'deleted' | 'other'): Promise<boolean> {
    const { set, log } = this.#options;
    await this.load();
    this.#unread = undefined;
    log.info({ messages: set.index.size }, 'the set of messages was read anew');
    return why === 'other';
  }
}
