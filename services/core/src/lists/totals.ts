import { type Kysely, sql, type Transaction } from 'kysely';
import type { Schema } from '../db/schema.ts';
import { mayPair, pairOf } from './labels.ts';

/**
 * Totals of message lists: exact, and not counted when they are asked for.
 *
 * Every label has its total. A pair of labels has one when both are heavy, that is, once had HEAVY messages: where one
 * of them is light, counting its few messages is quick. The pairs of a label are counted once, when it becomes heavy,
 * and kept from then on. So a message costs one update for each label and pair that it shares with others of its batch.
 */
export const HEAVY = 1_000;

/** The label of all messages. */
const ALL = '';

/** Messages that came into the lists (1) or left them (-1), by their labels. */
export interface Counted {
  readonly labels: readonly string[];
  readonly by: 1 | -1;
}

const add = (sums: Map<string, number>, key: string, by: number) => sums.set(key, (sums.get(key) ?? 0) + by);

/** The rows of this batch are in the lists' tables already. */
export async function countIn(trx: Transaction<Schema>, counted: readonly Counted[]): Promise<void> {
  if (counted.length === 0) return;
  const singles = new Map<string, number>();
  for (const { labels, by } of counted) {
    add(singles, ALL, by);
    for (const label of labels) add(singles, label, by);
  }
  const { rows } = await sql<{ a: string; total: number; heavy: boolean }>`
    insert into totals (a, b, total) select a, ${ALL}, total
    from unnest(${[...singles.keys()]}::text[], ${[...singles.values()]}::bigint[]) as t (a, total) order by a
    on conflict (a, b) do update set total = totals.total + excluded.total
    returning a, total, heavy`.execute(trx);
  const heavy = new Set(rows.filter((row) => row.heavy).map((row) => row.a));
  await countPairs(trx, counted, heavy);
  const risen = rows.filter((row) => !row.heavy && row.a !== ALL && row.total >= HEAVY);
  // One after another: the second of two that rise together finds the first one heavy.
  for (const { a } of risen) await becomeHeavy(trx, a);
}

async function countPairs(
  trx: Transaction<Schema>,
  counted: readonly Counted[],
  heavy: ReadonlySet<string>,
): Promise<void> {
  const pairs = new Map<string, number>();
  for (const { labels, by } of counted) {
    const own = labels.filter((label) => heavy.has(label));
    for (const [index, x] of own.entries()) {
      for (const y of own.slice(index + 1)) if (mayPair(x, y)) add(pairs, JSON.stringify(pairOf(x, y)), by);
    }
  }
  if (pairs.size === 0) return;
  const keys = [...pairs.keys()].map((key) => JSON.parse(key) as [string, string]);
  await sql`
    insert into totals (a, b, total)
    select * from unnest(${keys.map(([a]) => a)}::text[], ${keys.map(([, b]) => b)}::text[], ${[...pairs.values()]}::bigint[])
    on conflict (a, b) do update set total = totals.total + excluded.total`.execute(trx);
}

const COLUMNS = { s: 'sender', t: 'type', c: 'channel', p: 'content_type', k: 'shape' } as const;

/** The messages that have a label, with all of their labels but the tags. */
const messagesWith = (label: string) => {
  const [property, value] = [label[0]!, label.slice(2)];
  if (property === 'g')
    return sql`select m.* from message_tags g join messages m using (item_hash) where g.tag = ${value}`;
  const column = COLUMNS[property as keyof typeof COLUMNS];
  return sql`select * from messages where status = 'processed' and ${sql.ref(column)} = ${property === 'k' ? Number(value) : value}`;
};

/** Counts the pairs of a label with everything that is heavy, once; it has about HEAVY messages then. */
async function becomeHeavy(trx: Transaction<Schema>, label: string): Promise<void> {
  await sql`update totals set heavy = true where a = ${label} and b = ${ALL}`.execute(trx);
  await sql`
    with own as materialized (${messagesWith(label)}),
    others as (
      select 's:' || sender as label from own
      union all select 't:' || type from own
      union all select 'c:' || channel from own where channel is not null
      union all select 'p:' || content_type from own where content_type is not null
      union all select 'k:' || shape from own where shape is not null
      union all select 'g:' || g.tag from own join message_tags g using (item_hash)
    )
    insert into totals (a, b, total)
    select least(label, ${label}::text collate "C"), greatest(label, ${label}::text collate "C"), count(*) from others
    where left(label, 1) <> left(${label}::text, 1)
      and exists (select from totals t where t.a = others.label and t.b = ${ALL} and t.heavy)
    group by label
    on conflict (a, b) do update set total = excluded.total`.execute(trx);
}

/**
 * The total of a list that is filtered by the given properties, where it is kept: each property is a list of labels, of
 * which a message has exactly one. undefined: it has to be counted, and the count is cheap unless three properties are
 * combined.
 */
export async function findTotal(
  db: Kysely<Schema>,
  properties: readonly (readonly string[])[],
): Promise<number | undefined> {
  if (properties.length > 2) return undefined;
  const [xs = [ALL], ys] = properties;
  const singles = [...new Set([...xs, ...(ys ?? [])])];
  const known = await db
    .selectFrom('totals')
    .select(['a', 'total', 'heavy'])
    .where('b', '=', ALL)
    .where('a', 'in', singles)
    .execute();
  const byLabel = new Map(known.map((row) => [row.a, row]));
  const sum = (values: Iterable<number>) => [...values].reduce((total, one) => total + one, 0);
  if (!ys) return sum(xs.map((label) => byLabel.get(label)?.total ?? 0));
  // A label that no message has adds nothing, whatever it is paired with.
  const pairs = xs.flatMap((x) =>
    ys.filter((y) => byLabel.has(x) && byLabel.has(y)).map((y) => [x, y] as const),
  );
  if (pairs.some(([x, y]) => !byLabel.get(x)!.heavy || !byLabel.get(y)!.heavy)) return undefined;
  if (pairs.length === 0) return 0;
  const keys = pairs.map(([x, y]) => pairOf(x, y));
  const rows = await sql<{ total: number }>`
    select coalesce(sum(total), 0)::bigint as total from totals
    where (a, b) in (select * from unnest(${keys.map(([a]) => a)}::text[], ${keys.map(([, b]) => b)}::text[]))`.execute(
    db,
  );
  return rows.rows[0]!.total;
}
