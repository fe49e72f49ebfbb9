import { CREDIT_POST, METRICS_POST_TYPES, NETWORK_POST } from '@skerry/protocol';
import { type Kysely, sql } from 'kysely';
import type { ReadInForce } from '../../intake/pipeline/apply-batch.ts';
import { acceptStored, type StoredMessage } from '../../intake/stored.ts';
import type { ReadContentFile } from '../../store/content-reader.ts';
import type { Place, Schema } from '../../store/schema.ts';
import type { TrustName, TrustValue } from './decide.ts';

/** Messages whose effects hang on whom the node trusts. */
interface Kind {
  readonly contentTypes: readonly string[];
  /** Who has to be trusted: whoever signed it, or in whose name it is. */
  readonly by: 'sender' | 'owner';
}

/** What is derived again when a list changes; what is asked for each time anew needs nothing. */
const KINDS: Partial<Readonly<Record<TrustName, Kind>>> = {
  schedulers: { contentTypes: [NETWORK_POST.allocation], by: 'sender' },
  scoring_publishers: { contentTypes: METRICS_POST_TYPES, by: 'owner' },
  credit_publishers: { contentTypes: Object.values(CREDIT_POST), by: 'owner' },
};

export const hasStored = (name: TrustName) => KINDS[name] !== undefined;

/** Read, derived and written at once; each content may be megabytes. */
const MESSAGES_PER_ROUND = 50;

const isOf = ({ by }: Kind, changed: TrustValue | null) =>
  changed === null ? sql`true` : sql`${sql.ref(by)} = any(${changed}::text[])`;

/** What follows a place in the order of `readStored`, among the messages of the place's content type. */
const isAfter = ({ time, itemHash }: Place) =>
  itemHash === '' ? sql`true` : sql`("time" < ${time} or ("time" = ${time} and item_hash > ${itemHash}))`;

export interface Progress {
  readonly total: number;
  readonly done: number;
}

/**
 * How many messages are looked at, and how many of them were before this place.
 * @param changed whose; null: everybody's
 */
export async function countStored(
  db: Kysely<Schema>,
  name: TrustName,
  changed: TrustValue | null,
  place: Place | null,
): Promise<Progress> {
  const kind = KINDS[name]!;
  const at = place?.kind ?? 0;
  const left = sql`content_type = any(${kind.contentTypes.slice(at + 1)}::text[])
    or (content_type = ${kind.contentTypes[at]} and ${place ? isAfter(place) : sql`true`})`;
  const { rows } = await sql<Progress>`
    select count(*)::int as total, (count(*) filter (where not (${left})))::int as done from messages
    where type = 'POST' and status = 'processed' and content_type = any(${[...kind.contentTypes]}::text[])
      and ${isOf(kind, changed)}`.execute(db);
  return rows[0]!;
}

export interface StoredRound {
  readonly rows: readonly StoredMessage[];
  /** Where to go on; null: that was the end. */
  readonly next: Place | null;
}

/** The next messages of a kind, newest first, so that a round costs what it reads however many there are. */
export async function readStored(
  db: Kysely<Schema>,
  name: TrustName,
  changed: TrustValue | null,
  place: Place | null,
): Promise<StoredRound> {
  const kind = KINDS[name]!;
  const at = place?.kind ?? 0;
  const { rows } = await sql<StoredMessage>`
    select * from messages
    where type = 'POST' and status = 'processed' and content_type = ${kind.contentTypes[at]}
      and ${isOf(kind, changed)} and ${place ? isAfter(place) : sql`true`}
    order by "time" desc, item_hash limit ${MESSAGES_PER_ROUND}`.execute(db);
  const last = rows.at(-1);
  if (rows.length === MESSAGES_PER_ROUND)
    return { rows, next: { kind: at, time: last!.time, itemHash: last!.item_hash } };
  return { rows, next: at + 1 < kind.contentTypes.length ? { kind: at + 1, time: 0, itemHash: '' } : null };
}

/**
 * Reads the contents that are files before anybody has to wait. @returns what reads those of the messages that are still
 * in force, as they are then
 */
export async function prepareReading(
  rows: readonly StoredMessage[],
  readContentFile: ReadContentFile,
): Promise<ReadInForce> {
  const contents = new Map<string, Uint8Array | undefined>();
  await Promise.all(
    rows
      .filter(({ content }) => content === null)
      .map(async ({ item_hash: hash }) => contents.set(hash, await readContentFile(hash))),
  );
  const hashes = rows.map(({ item_hash: hash }) => hash);
  return async (trx) => {
    if (hashes.length === 0) return [];
    const { rows: inForce } = await sql<StoredMessage>`
      select * from messages where item_hash = any(${hashes}::text[]) and status = 'processed'
      order by "time" desc, item_hash`.execute(trx);
    return Promise.all(inForce.map((row) => acceptStored(row, async (hash) => contents.get(hash))));
  };
}
