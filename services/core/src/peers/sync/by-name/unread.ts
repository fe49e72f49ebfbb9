import { type ShortKey, shortKeyOf, WANTED_KEYS_MAX } from '@skerry/protocol';
import { type Kysely, sql } from 'kysely';
import { type KeyColumns, keyOfRow } from '../../../intake/pipeline/statement.ts';
import { messageKeyOf } from '../../../store/dependency-keys.ts';
import { IS_REJECTED } from '../../../store/files/missed.ts';
import type { Schema } from '../../../store/schema.ts';
import type { PeerLink } from '../link.ts';
import { checkAsked, checkTally, type SessionOptions } from '../session.ts';

/** With so many to ask for, a session reads no further page. */
const ENOUGH = 100;
/** Rejected messages that one statement looks at, so that one request can ask for all that is found; and statements in one session. */
const EXAMINED = WANTED_KEYS_MAX - ENOUGH;
const PAGES_MAX = 5;

interface Place {
  readonly time: number;
  readonly hash: string;
}

const NEWEST: Place = { time: Number.POSITIVE_INFINITY, hash: '' };

type Row = KeyColumns & { readonly is_asked: boolean };

/** A page of rejected messages, and of each whether it waits for its content in vain while other messages hang on it. */
async function readPage(db: Kysely<Schema>, { time, hash }: Place): Promise<Row[]> {
  const all = sql`select * from messages where ${IS_REJECTED}`;
  const { rows } = await sql<Row>`
    with page as materialized (
      select * from (
        (${all} and "time" = ${time}::float8 and item_hash > ${hash} order by item_hash limit ${EXAMINED})
        union all (${all} and "time" < ${time}::float8 order by "time" desc, item_hash limit ${EXAMINED})) as parts
      order by "time" desc, item_hash limit ${EXAMINED})
    select item_hash, form, sender, channel, "time", sent_time, tags, noted_ms, erased,
      form = 'network' and content is null and source_text is null and erased is null
        and coalesce(reason ->> 'code' = 'CONTENT_NOT_FOUND', false)
        and exists (select from dependencies d where d.key = ${messageKeyOf('page.item_hash')}) as is_asked
    from page order by "time" desc, item_hash`.execute(db);
  return rows;
}

/**
 * Messages whose content never came: nobody here knows on whose behalf they spoke, so that a FORGET of one is never decided. A peer that
 * read one and forgot it has it by the same key, so no comparison finds it; it tells what is left of it when it is asked.
 */
export class Unread {
  readonly #db: Kysely<Schema>;
  /** How far each peer was asked. */
  readonly #places = new WeakMap<PeerLink, Place>();

  constructor(db: Kysely<Schema>) {
    this.#db = db;
  }

  /** The next ones to ask a peer for, back through the rejected messages; after the last one from the newest again. */
  async #next(link: PeerLink): Promise<ShortKey[]> {
    let keys: ShortKey[] = [];
    for (let page = 0; page < PAGES_MAX && keys.length < ENOUGH; page++) {
      const rows = await readPage(this.#db, this.#places.get(link) ?? NEWEST);
      keys = [...keys, ...rows.filter((row) => row.is_asked).map((row) => shortKeyOf(keyOfRow(row)))];
      const last = rows.at(-1);
      if (!last || rows.length < EXAMINED) {
        this.#places.delete(link);
        break;
      }
      this.#places.set(link, { time: last.time, hash: last.item_hash });
    }
    return keys;
  }

  /** Asks a peer what is left of some. Throws what the link, `read` and `keep` throw, and ForgedError. */
  async ask(
    link: PeerLink,
    {
      source,
      declined,
      signal,
      onProgress,
    }: Pick<SessionOptions, 'source' | 'declined' | 'signal' | 'onProgress'>,
  ): Promise<void> {
    const asked = (await this.#next(link)).filter((key) => !declined.has(key));
    if (asked.length === 0) return;
    // Not again for a while, whatever the peer has of them.
    for (const key of asked) declined.note(key);
    const read = await source.read(await link.fetchMessages(asked, signal));
    checkAsked(asked, read);
    const left = read.filter((one) => 'fault' in one || one.accepted.isSkeleton);
    const tally = await source.keep(left);
    onProgress?.(tally);
    checkTally(tally);
  }
}
