import { bytesToHex, isItemHash64, type ShortKey, type SyncKey, syncKeyOf } from '@skerry/protocol';
import { type Kysely, sql } from 'kysely';
import type { Schema } from '../db/schema.ts';
import { fieldsOfRow, type KeyColumns, type Move } from '../messages/statement.ts';
import { SetIndex } from './set-index.ts';

/** Rows that are read at once while the index is made. */
const LOAD_ROWS = 20_000;
const HASH_BYTES = 32;

async function* readKeys(db: Kysely<Schema>): AsyncGenerator<KeyColumns[]> {
  let after = '';
  for (;;) {
    const { rows } = await sql<KeyColumns>`
      select item_hash, form, sender, channel, "time", tags, noted_ms from messages
      where item_hash > ${after} order by item_hash limit ${LOAD_ROWS}`.execute(db);
    if (rows.length > 0) yield rows;
    if (rows.length < LOAD_ROWS) return;
    after = rows.at(-1)!.item_hash;
  }
}

/** Every message that the node keeps, whatever its status, as a set that others can compare theirs with. */
export class NodeSet {
  #index = new SetIndex();
  /** Names of messages that are named by CID, by their hash in the index. */
  readonly #cids = new Map<string, string>();
  /** What became durable while the index was being made. */
  #early: Move[] | undefined = [];

  /** Whether it knows all messages; before that it only takes note. */
  get isReady(): boolean {
    return this.#early === undefined;
  }

  get index(): SetIndex {
    return this.#index;
  }

  /** Reads every key once. `follow` must be connected before. */
  async load(db: Kysely<Schema>): Promise<void> {
    const keys: SyncKey[] = [];
    for await (const rows of readKeys(db)) {
      for (const row of rows) {
        this.#note(row.item_hash);
        keys.push(syncKeyOf(fieldsOfRow(row)));
      }
    }
    this.#index = SetIndex.of(keys);
    const early = this.#early ?? [];
    this.#early = undefined;
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
      tags: [],
      notedMs: null,
    });
    this.#cids.set(bytesToHex(id.subarray(0, HASH_BYTES)), itemHash);
  }

  follow(moves: readonly Move[]): void {
    if (this.#early) {
      this.#early.push(...moves);
      return;
    }
    for (const { itemHash, from, to } of moves) {
      if (from) this.#index.remove(from);
      this.#note(itemHash);
      this.#index.add(to);
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
