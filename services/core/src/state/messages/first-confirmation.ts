import type { Page } from '@skerry/database';
import { type RawBuilder, sql } from 'kysely';

/** Lists by the time at which a chain confirmed something first; what none confirmed is newer than all that one did. */

export interface ConfirmedPlace {
  /** Unix seconds; null where nothing confirms it. */
  readonly confirmed: number | null;
  /** Unix seconds of the thing itself, among those that were confirmed at once. */
  readonly time: number;
  readonly itemHash: string;
}

export interface ConfirmedPage extends Page {
  /** The last one of the page before. */
  readonly after?: ConfirmedPlace | undefined;
  readonly oldestFirst?: boolean | undefined;
}

/** When the message `alias` was confirmed first, Unix seconds; infinity where it was not. */
export const firstConfirmedAt = (alias: string): RawBuilder<unknown> => sql`coalesce((
  select min(coalesce(e.block_time, e.seen_ms / 1000)) from confirmations c
  join anchor_events e on e.network = c.network and e.block_number = c.block_number and e.log_index = c.log_index
  where c.item_hash = ${sql.ref(`${alias}.item_hash`)} and c.sender = ${sql.ref(`${alias}.sender`)}
  )::float8, 'infinity'::float8)`;

const timeOf = (confirmed: number | null) =>
  confirmed === null ? sql`'infinity'::float8` : sql`${confirmed}::float8`;

/** Over rows `o` with `confirmed`, `time` and `item_hash`. */
export const confirmedOrder = ({ oldestFirst }: ConfirmedPage) => {
  const direction = oldestFirst ? sql`asc` : sql`desc`;
  return sql`order by o.confirmed ${direction}, o."time" ${direction}, o.item_hash`;
};

/** The rows of a page, among all rows `o` that fit. @param rows with `confirmed`, `time` and `item_hash` */
export function confirmedPage(rows: RawBuilder<unknown>, page: ConfirmedPage): RawBuilder<unknown> {
  const { after, limit, offset, oldestFirst } = page;
  const beyond = oldestFirst ? sql`>` : sql`<`;
  const where = after
    ? sql`where (o.confirmed, o."time") ${beyond} (${timeOf(after.confirmed)}, ${after.time}::float8)
        or (o.confirmed = ${timeOf(after.confirmed)} and o."time" = ${after.time}::float8 and o.item_hash > ${after.itemHash})`
    : sql``;
  return sql`select * from (${rows}) o ${where} ${confirmedOrder(page)} limit ${limit} offset ${offset}`;
}
