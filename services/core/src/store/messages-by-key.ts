import { type RawBuilder, sql } from 'kysely';

/**
 * The message `m` of each key `k.item_hash`, which is looked up by its key whatever the planner takes the table for: for some
 * thousand keys it rather reads the whole of a table that it thinks small, and of one that grows fast it knows little.
 */
export const MESSAGE_OF_KEY: RawBuilder<unknown> = sql`
  lateral (select * from messages where item_hash = k.item_hash limit 1) m on true`;

/** Messages `m` by their hashes, those that are here; `nth` says which of the hashes, from 1. */
export const messagesOf = (hashes: readonly string[]): RawBuilder<unknown> => sql`
  unnest(${hashes}::text[]) with ordinality as k (item_hash, nth) join ${MESSAGE_OF_KEY}`;
