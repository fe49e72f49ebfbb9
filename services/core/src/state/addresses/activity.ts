import type { AddressStatsView } from '@skerry/protocol/api/core/deployed/addresses';
import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { Schema } from '../../store/schema.ts';
import { totalMessages } from '../lists/count.ts';
import { meansIndex } from '../lists/driver.ts';
import { labelOf } from '../lists/labels.ts';
import { PROPERTIES } from '../lists/properties.ts';
import { withTimeLimit } from '../lists/time-limit.ts';

/** What addresses did: how much, of which types, in which channels. */

/** Channels, or types, that one answer names. */
const NAMED_MAX = 10_000;

/**
 * The different values of a column among an address's messages in force, by one step in an index from each to the next,
 * however many messages have it.
 */
const valuesOf = (sender: string, column: 'channel' | 'shape', index: string): RawBuilder<unknown> => {
  const value = sql.ref(`x.${column}`);
  const own = sql`from messages x where x.sender = ${sender} and x.status = 'processed'
    and ${meansIndex('x', index)}`;
  return sql`
    with recursive found (value) as (
      (select ${value} ${own} and ${value} is not null order by ${value} limit 1)
      union all
      select (select ${value} ${own} and ${value} > f.value order by ${value} limit 1)
      from found f where f.value is not null
    )
    select value from found where value is not null limit ${NAMED_MAX}`;
};

export const listChannelsOf = (db: Kysely<Schema>, sender: string): Promise<string[]> =>
  withTimeLimit(db, async (on) => {
    const values = valuesOf(sender, 'channel', 'messages_by_sender_channel');
    const { rows } = await sql<{ value: string }>`${values}`.execute(on);
    return rows.map((row) => row.value);
  });

/** A shape has one type of content. */
export const listPostTypesOf = (db: Kysely<Schema>, sender: string): Promise<string[]> =>
  withTimeLimit(db, async (on) => {
    const { rows } = await sql<{ type: string }>`
      select distinct s.content_type as type from (${valuesOf(sender, 'shape', 'messages_by_sender_shape')}) v
      join shapes s on s.id = v.value where s.type = 'POST' and s.content_type is not null order by 1`.execute(
      on,
    );
    return rows.map((row) => row.type);
  });

type NamedLetter = typeof PROPERTIES.channels.letter | typeof PROPERTIES.addresses.letter;

/** The total of each value that has labels of one letter. */
const totalsOf = (letter: NamedLetter): RawBuilder<unknown> => {
  const start = labelOf(letter, '');
  const end = `${letter};`;
  return sql`select substr(a, ${start.length + 1}::integer) as value, total from totals
    where a >= ${start} and a < ${end} and b = '' and total > 0`;
};

/** The channels of all messages in force. */
export const listAllChannels = (db: Kysely<Schema>): Promise<string[]> =>
  withTimeLimit(db, async (on) => {
    const { rows } = await sql<{ value: string }>`
      select value from (${totalsOf(PROPERTIES.channels.letter)}) c order by value limit ${NAMED_MAX}`.execute(
      on,
    );
    return rows.map((row) => row.value);
  });

const TYPES = ['AGGREGATE', 'FORGET', 'INSTANCE', 'POST', 'PROGRAM', 'STORE'] as const;

/** How many messages of each type an address sent; kept totals say most of it. */
export async function statsOf(db: Kysely<Schema>, address: string): Promise<AddressStatsView> {
  const addresses = [address];
  const [messages, ...counts] = await Promise.all([
    totalMessages(db, { addresses }),
    ...TYPES.map((type) => totalMessages(db, { addresses, types: [type] })),
  ]);
  const byType = Object.fromEntries(TYPES.map((type, at) => [type.toLowerCase(), counts[at]!]));
  return { messages, ...(byType as Omit<AddressStatsView, 'messages'>) };
}

interface StatsPage {
  readonly contains?: string | undefined;
  /** Undefined: all messages count. */
  readonly type?: string | undefined;
  readonly smallestFirst: boolean;
  readonly limit: number;
  readonly offset: number;
}

/** Addresses by how many messages they sent; equal ones in order of address. Throws LIST_TOO_COSTLY. */
export function listBusiest(
  db: Kysely<Schema>,
  { contains, type, smallestFirst, limit, offset }: StatsPage,
): Promise<{ addresses: string[]; total: number }> {
  const counted =
    type === undefined
      ? totalsOf(PROPERTIES.addresses.letter)
      : sql`select sender as value, count(*) as total from messages x
          where status = 'processed' and type = ${type} and ${meansIndex('x', 'messages_by_type')} group by sender`;
  const among =
    contains === undefined ? sql`` : sql`where strpos(lower(value), ${contains.toLowerCase()}) > 0`;
  return withTimeLimit(db, async (on) => {
    const { rows } = await sql<{ value: string }>`
      select value from (${counted}) c ${among}
      order by total ${smallestFirst ? sql`asc` : sql`desc`}, value limit ${limit} offset ${offset}`.execute(
      on,
    );
    const all = await sql<{ total: number }>`
      select count(*) as total from (${counted}) c ${among}`.execute(on);
    return { addresses: rows.map((row) => row.value), total: all.rows[0]!.total };
  });
}

/** How addresses spell themselves, where that is not the one way that they are kept: as their latest message has it. */
export async function spellingsOf(
  db: Kysely<Schema>,
  addresses: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const { rows } = await sql<{ address: string; spelling: string }>`
    select a.address, m.signed_sender as spelling from unnest(${addresses}::text[]) as a (address)
    cross join lateral (
      select x.signed_sender from messages x where x.sender = a.address and x.status = 'processed'
        and ${meansIndex('x', 'messages_by_sender')} order by x.type, x."time" desc limit 1
    ) m where m.signed_sender is not null`.execute(db);
  return new Map(rows.map((row) => [row.address, row.spelling]));
}
