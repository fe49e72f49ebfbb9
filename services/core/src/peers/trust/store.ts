import { type Kysely, sql, type Transaction } from 'kysely';
import { rewritePrices } from '../../state/credits/write.ts';
import type { Place, Schema } from '../../store/schema.ts';
import type { Held, TrustName, TrustValue } from './decide.ts';

export interface TrustRow extends Held {
  /** What the stored state was derived for; null: not known. */
  readonly derived: TrustValue | null;
  readonly place: Place | null;
}

export async function readTrust(db: Kysely<Schema>): Promise<Map<TrustName, TrustRow>> {
  const rows = await db.selectFrom('trust').selectAll().execute();
  return new Map(rows.map(({ name, told_by: toldBy, ...row }) => [name as TrustName, { ...row, toldBy }]));
}

/** The addresses that other tables are joined with. */
const TABLES: Partial<Readonly<Record<TrustName, 'metrics_publishers' | 'credit_publishers'>>> = {
  scoring_publishers: 'metrics_publishers',
  credit_publishers: 'credit_publishers',
};

const jsonOf = (value: unknown) => (value === null ? null : JSON.stringify(value));

/** From here on this counts for what comes; what is stored is still that of `derived`. */
export async function writeTrust(
  trx: Transaction<Schema>,
  name: TrustName,
  { value, source, toldBy, derived }: Omit<TrustRow, 'place'>,
): Promise<void> {
  await sql`
    insert into trust (name, value, source, told_by, derived, place)
    values (${name}, ${jsonOf(value)}::jsonb, ${source}, ${jsonOf(toldBy)}::jsonb, ${jsonOf(derived)}::jsonb, null)
    on conflict (name) do update set value = excluded.value, source = excluded.source, told_by = excluded.told_by,
      derived = excluded.derived, place = null`.execute(trx);
  const table = TABLES[name];
  if (table === undefined) return;
  await trx.deleteFrom(table).execute();
  await sql`insert into ${sql.table(table)} select unnest(${value}::text[])`.execute(trx);
  if (name === 'credit_publishers') await rewritePrices(trx);
}

/** Where the derivation for `value` is; nothing, if something else is in force meanwhile. */
export async function writePlace(
  db: Kysely<Schema>,
  name: TrustName,
  place: Place | null,
  value: TrustValue,
): Promise<void> {
  await sql`
    update trust set place = ${jsonOf(place)}::jsonb
    where name = ${name} and value = ${jsonOf(value)}::jsonb`.execute(db);
}

/** All that is stored is derived for `value`. */
export async function writeDerived(db: Kysely<Schema>, name: TrustName, value: TrustValue): Promise<void> {
  await sql`
    update trust set derived = value, place = null
    where name = ${name} and value = ${jsonOf(value)}::jsonb`.execute(db);
}

/** Changes whenever something is derived again, also where no event tells of it. */
export const TRUST_MARK = sql`(select string_agg(concat_ws(':', name, value, derived, place), ' ' order by name) from trust)`;
