import type { DerivedKind } from '@skerry/protocol';
import { type RawBuilder, sql } from 'kysely';

/** A list of texts in canonical JSON. */
const listOf = (...columns: readonly RawBuilder<string>[]) =>
  sql<string>`'[' || ${sql.join(
    columns.map((column) => sql`to_json(${column})::text`),
    sql` || ',' || `,
  )} || ']'`;

/**
 * The elements of the digests that anybody can compute (packages/protocol/src/sync/derived.ts has the rule), from the tables
 * that answers are made of: each row a text `r`.
 */
export const ELEMENTS: Readonly<Record<DerivedKind, RawBuilder<unknown>>> = {
  posts: sql`select ${listOf(sql`m.item_hash`, sql`coalesce(p.latest_hash, m.item_hash)`)} as r
    from messages m left join amended_posts p on p.item_hash = m.item_hash
    where m.type = 'POST' and m.status = 'processed' and m.content_type <> 'amend'`,
  aggregates: sql`select ${listOf(sql`owner`, sql`key`, sql`field`, sql`item_hash`)} as r from aggregate_entries`,
  credits: sql`select ${listOf(sql`item_hash`, sql`place::text`, sql`owner`, sql`nano::text`)} as r
    from credit_entries where counts`,
  // Programs keep their code as well, and messages the files that their contents are: those follow from them.
  files: sql`select ${listOf(sql`p.file_hash`, sql`p.message_hash`, sql`p.owner`)} as r
    from file_pins p join messages m on m.item_hash = p.message_hash where m.type = 'STORE' and p.file_hash <> p.message_hash`,
  measurements: sql`select ${listOf(sql`item_hash`, sql`owner`)} as r from metrics_messages`,
  programs: sql`select ${listOf(sql`program_hash`, sql`owner`)} as r from programs`,
};
