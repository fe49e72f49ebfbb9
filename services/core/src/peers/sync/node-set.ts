import {
  AppError,
  bytesToHex,
  isItemHash64,
  type MessageStatus,
  type ShortKey,
  type SyncKey,
  syncKeyOf,
} from '@skerry/protocol';
import { type Kysely, sql } from 'kysely';
import {
  forgottenKeyOfRow,
  type HeadColumns,
  isAmongForgotten,
  type KeyColumns,
  keyOfRow,
  type Move,
} from '../../intake/pipeline/statement.ts';
import { MESSAGES } from '../../store/message-set.ts';
import type { Schema } from '../../store/schema.ts';
import { SetIndex } from './set-index.ts';

/** Rows that are read at once while the index is made. */
const LOAD_ROWS = 20_000;
const HASH_BYTES = 32;
/** Changes that are kept while the keys are read; with more of them the reading begins again. */
const EARLY_MOVES_MAX = 500_000;

async function countMessages(db: Kysely<Schema>): Promise<number> {
  const row = await db
    .selectFrom('digests')
    .select('count')
    .where('name', '=', MESSAGES)
    .executeTakeFirstOrThrow();
  return row.count;
}

/** Of those that are not forgotten nothing is made of these, and their texts would take longer to read than all else. */
const HEAD = sql.join(
  ['owner', 'type', 'content_type', 'subject'].map(
    (name) =>
      sql`case when status = 'forgotten' or erased is not null then ${sql.ref(name)} end as ${sql.ref(name)}`,
  ),
);

type Row = KeyColumns & HeadColumns & { readonly status: MessageStatus };

async function* readKeys(db: Kysely<Schema>): AsyncGenerator<Row[]> {
  let after = '';
  for (;;) {
    const { rows } = await sql<Row>`
      select item_hash, form, sender, channel, "time", sent_time, tags, noted_ms, erased, status, ${HEAD}
      from messages
      where item_hash > ${after} order by item_hash limit ${LOAD_ROWS}`.execute(db);
    if (rows.length > 0) yield rows;
    if (rows.length < LOAD_ROWS) return;
    after = rows.at(-1)!.item_hash;
  }
}

/** Every message that the node keeps, whatever its status, as a set that others can compare theirs with. */
export class NodeSet {
  #index = new SetIndex();
  #forgotten = new SetIndex();
  /** Names of messages that are named by CID, by their hash in the index. */
  readonly #cids = new Map<string, string>();
  /** What becomes durable while the keys are being read; undefined while they are not. */
  #early: Move[] | undefined;
  #isReady = false;
  /** As of when the reading began. */
  #counted = 0;
  readonly #earlyMax: number;

  constructor({ earlyMovesMax = EARLY_MOVES_MAX } = {}) {
    this.#earlyMax = earlyMovesMax;
  }

  /** Whether it knows all messages. */
  get isReady(): boolean {
    return this.#isReady;
  }

  /** How many messages the node keeps, also while their keys are being read: peers choose by it how they ask. */
  get size(): number {
    return this.#isReady ? this.#index.size : this.#counted;
  }

  /** The time of the message that is dated last, Unix seconds; undefined where there is none, or its key is not read yet. */
  get newestTime(): number | undefined {
    const { size } = this.#index;
    return size === 0 ? undefined : this.#index.keyAt(size - 1).time;
  }

  get index(): SetIndex {
    return this.#index;
  }

  /** Of these the messages that are forgotten, with what is told of each without its text (`forgottenKeyOf`). */
  get forgotten(): SetIndex {
    return this.#forgotten;
  }

  /**
   * Reads every key once. `follow` must be connected before. One that failed may be called again: what became durable before
   * is read then. Throws OVERLOADED where too much changes meanwhile.
   */
  async load(db: Kysely<Schema>): Promise<void> {
    const early: Move[] = [];
    this.#isReady = false;
    this.#early = early;
    try {
      this.#counted = await countMessages(db);
      const keys: SyncKey[] = [];
      // One after another: as a list beside the other one, a million took 300 MB for the moment.
      const forgotten = new SetIndex();
      for await (const rows of readKeys(db)) {
        for (const row of rows) {
          this.#note(row.item_hash);
          keys.push(keyOfRow(row));
          if (isAmongForgotten(row)) forgotten.add(forgottenKeyOfRow(row));
        }
        if (early.length > this.#earlyMax)
          throw new AppError(
            'OVERLOADED',
            `more than ${this.#earlyMax} messages came in while those that are kept were read`,
          );
      }
      this.#index = SetIndex.of(keys);
      this.#forgotten = forgotten;
      this.#isReady = true;
    } finally {
      this.#early = undefined;
    }
    this.follow(early);
  }

  #note(itemHash: string): void {
    if (isItemHash64(itemHash)) return;
    const { id } = syncKeyOf({
      form: 'envelope',
      itemHash,
      sender: '',
      channel: null,
      time: 0,
      sentTime: null,
      tags: [],
      notedMs: null,
    });
    this.#cids.set(bytesToHex(id.subarray(0, HASH_BYTES)), itemHash);
  }

  follow(moves: readonly Move[]): void {
    if (!this.#isReady) {
      // One too many says that some are lacking.
      if (this.#early && this.#early.length <= this.#earlyMax) this.#early.push(...moves);
      return;
    }
    for (const { itemHash, from, to, isOfForgotten } of moves) {
      const index = isOfForgotten ? this.#forgotten : this.#index;
      if (from) index.remove(from);
      this.#note(itemHash);
      if (to) index.add(to);
    }
  }

  /** The item hash of a key. */
  nameOf({ id }: SyncKey): string {
    const hash = bytesToHex(id.subarray(0, HASH_BYTES));
    return this.#cids.get(hash) ?? hash;
  }

  has(key: ShortKey): boolean {
    return this.#index.find(key) !== undefined;
  }
}
