import type { Page } from '@skerry/database';
import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { Schema } from '../../store/schema.ts';
import { withTimeLimit } from '../lists/time-limit.ts';

export interface HistoryRow {
  readonly item_hash: string;
  readonly place: number;
  readonly kind: 'purchase' | 'expense';
  readonly nano: string;
  readonly ref: string;
  /** Unix seconds. */
  readonly time: number;
  /** What the message says of all its lines, and the line. */
  readonly terms: Readonly<Record<string, unknown>>;
  readonly line: Readonly<Record<string, unknown>>;
}

/** What a history may be narrowed by; of lists any of the values. */
export interface HistoryFilter {
  readonly owner: string;
  readonly kind?: 'purchase' | 'expense' | undefined;
  readonly ref?: string | undefined;
  /** Names one entry, and those that do not count beside it. */
  readonly key?: string | undefined;
  /** Unix seconds. */
  readonly from?: number | undefined;
  readonly to?: number | undefined;
  /** Message types of what cost it. */
  readonly resourceTypes?: readonly string[] | undefined;
  /** Fields of the message, by their names in it: all of its lines, or the line. */
  readonly terms?: Readonly<Record<string, string>>;
  readonly line?: Readonly<Record<string, string>>;
  readonly notLine?: Readonly<Record<string, string>>;
}

const TERMS = sql`(m.content -> 'content' -> (case e.kind when 'purchase' then 'distribution' else 'expense' end))`;
const LINE = sql`(${TERMS} -> 'credits' -> e.place)`;

const equal = (json: RawBuilder<unknown>, fields: Readonly<Record<string, string>> = {}) =>
  Object.entries(fields).map(([name, value]) => sql`${json} ->> ${name}::text = ${value}`);
const unequal = (json: RawBuilder<unknown>, fields: Readonly<Record<string, string>> = {}) =>
  Object.entries(fields).map(([name, value]) => sql`${json} ->> ${name}::text is distinct from ${value}`);

/** The entries `e` that fit, with their messages `m` where they are needed. */
function entriesOf(filter: HistoryFilter, needsMessages = false): RawBuilder<unknown> {
  const asksMessages = [filter.terms, filter.line, filter.notLine].some(
    (one) => one && Object.keys(one).length > 0,
  );
  const join = needsMessages || asksMessages ? sql`join messages m using (item_hash)` : sql``;
  const { owner, kind, ref, key, from, to, resourceTypes } = filter;
  const conditions = [
    sql`e.owner = ${owner} and e.counts`,
    ...(kind === undefined ? [] : [sql`e.kind = ${kind}`]),
    ...(ref === undefined ? [] : [sql`e.ref = ${ref}`]),
    ...(key === undefined ? [] : [sql`e.key = ${key}`]),
    ...(from === undefined ? [] : [sql`e."time" >= ${from}::float8`]),
    ...(to === undefined ? [] : [sql`e."time" < ${to}::float8`]),
    ...(resourceTypes
      ? [
          sql`exists (select from messages r where r.item_hash = e.ref and r.type = any(${resourceTypes}::text[]))`,
        ]
      : []),
    ...equal(TERMS, filter.terms),
    ...equal(LINE, filter.line),
    ...unequal(LINE, filter.notLine),
  ];
  return sql`credit_entries e ${join} where ${sql.join(conditions, sql` and `)}`;
}

interface HistoryPage extends Page {
  readonly oldestFirst?: boolean | undefined;
  /** By how much it is in the place of when it was. */
  readonly byAmount?: boolean | undefined;
}

/** What was bought and used, newest first unless told otherwise. Throws LIST_TOO_COSTLY. */
export function listHistory(
  db: Kysely<Schema>,
  filter: HistoryFilter,
  { limit, offset, oldestFirst, byAmount }: HistoryPage,
): Promise<{ rows: HistoryRow[]; total: number }> {
  const direction = oldestFirst ? sql`asc` : sql`desc`;
  const order = [...(byAmount ? ['nano'] : []), 'time', 'item_hash', 'place'].map(
    (column) => sql`${sql.ref(`e.${column}`)} ${direction}`,
  );
  return withTimeLimit(db, async (on) => {
    const { rows } = await sql<HistoryRow>`
      select e.item_hash, e.place, e.kind, e.nano::text as nano, e.ref, e."time",
        ${TERMS} - 'credits' as terms, ${LINE} as line
      from ${entriesOf(filter, true)} order by ${sql.join(order)} limit ${limit} offset ${offset}`.execute(
      on,
    );
    const counted = await sql<{ total: number }>`
      select count(*) as total from ${entriesOf(filter)}`.execute(on);
    return { rows, total: counted.rows[0]!.total };
  });
}

interface HistorySums {
  readonly count: number;
  /** Billionths of a credit; what was used is below zero. */
  readonly incoming: bigint;
  readonly outgoing: bigint;
}

export const sumHistory = (db: Kysely<Schema>, filter: HistoryFilter): Promise<HistorySums> =>
  withTimeLimit(db, async (on) => {
    const { rows } = await sql<{ count: number; incoming: string; outgoing: string }>`
      select count(*) as count, coalesce(sum(e.nano) filter (where e.nano > 0), 0)::text as incoming,
        coalesce(sum(e.nano) filter (where e.nano < 0), 0)::text as outgoing from ${entriesOf(filter)}`.execute(
      on,
    );
    const { count, incoming, outgoing } = rows[0]!;
    return { count, incoming: BigInt(incoming), outgoing: BigInt(outgoing) };
  });

interface OwnedCredit {
  readonly owner: string;
  /** Billionths of a credit. */
  readonly nano: bigint;
}

/** What everybody has, in order of owner. @param minNano those that have so much; all where it is left out */
export function listCredit(
  db: Kysely<Schema>,
  at: number,
  minNano: bigint | undefined,
  { limit, offset, after }: Page & { readonly after?: string | undefined },
): Promise<{ rows: OwnedCredit[]; total: number }> {
  const having = minNano === undefined ? sql`` : sql`having sum(nano) >= ${String(minNano)}::numeric`;
  const sums = (beyond: string | undefined) => sql`
    select owner, sum(nano)::text as nano from credit_entries
    where counts and "time" <= ${at}::float8 ${beyond === undefined ? sql`` : sql`and owner > ${beyond}`} group by owner ${having}`;
  return withTimeLimit(db, async (on) => {
    const { rows } = await sql<{ owner: string; nano: string }>`
      ${sums(after)} order by owner limit ${limit} offset ${offset}`.execute(on);
    const all = await sql<{ total: number }>`select count(*) as total from (${sums(undefined)}) s`.execute(
      on,
    );
    return {
      rows: rows.map(({ owner, nano }) => ({ owner, nano: BigInt(nano) })),
      total: all.rows[0]!.total,
    };
  });
}
