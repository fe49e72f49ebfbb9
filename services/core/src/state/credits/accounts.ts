import {
  type CreditState,
  chargedFrom,
  chargeOf,
  creditsOf,
  holdOf as holdOfRate,
  type ResourceKind,
} from '@skerry/protocol';
import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { Schema } from '../../store/schema.ts';
import { chargeKeyOf, IS_PRICE, PRICED, RATE, rateBy } from './sql.ts';

type Db = Kysely<Schema>;

/** An owner's account as of a time. Amounts in billionths of a credit. */
export interface Account {
  readonly owner: string;
  readonly balance: bigint;
  /** Per second, of everything that the owner has. */
  readonly rate: bigint;
  /** What publishers announced last. */
  readonly state: CreditState | null;
  /** Since when that holds, Unix seconds. */
  readonly stateSince: number | null;
}

interface AccountRow {
  readonly owner: string;
  readonly balance: string;
  readonly rate: string;
  readonly state: CreditState | null;
  readonly state_since: number | null;
}

/** The units are added up first: few numbers are left that need more than 64 bits. */
const rateOf = (owner: RawBuilder<unknown>, at: number) => sql`
  select coalesce(sum(${rateBy(sql`s.units`, sql`s.mib`)}), 0) as rate
  from credit_price_steps p cross join lateral (
    select coalesce(sum(r.units), 0) as units, coalesce(sum(r.mib), 0) as mib from credit_resources r
    where r.owner = ${owner} and ${IS_PRICE} and r.created <= ${at}::float8
  ) s`;

const accountOf = (owner: RawBuilder<unknown>, at: number) => sql`
  select
    (select coalesce(sum(e.nano), 0) from credit_entries e
     where e.owner = ${owner} and e.counts and e."time" <= ${at}::float8)::text as balance,
    (${rateOf(owner, at)})::text as rate, latest.state, latest."time" as state_since
  from (select) nothing left join lateral (
    select state, "time" from credit_notices n where n.owner = ${owner} and n."time" <= ${at}::float8
    order by "time" desc, item_hash desc limit 1
  ) latest on true`;

const readAccount = (row: AccountRow): Account => ({
  owner: row.owner,
  balance: BigInt(row.balance),
  rate: BigInt(row.rate),
  state: row.state,
  stateSince: row.state_since,
});

/** @param at Unix seconds; what is dated later is left out */
export async function getAccount(db: Db, owner: string, at: number): Promise<Account> {
  const { rows } = await sql<AccountRow>`
    select ${owner}::text as owner, a.* from (${accountOf(sql`${owner}::text`, at)}) a`.execute(db);
  return readAccount(rows[0]!);
}

/** Whole credits that a day of everything costs: kept back before anything new is taken. */
export const holdOf = ({ rate }: Account): bigint => creditsOf(holdOfRate(rate));

/** When the balance is used up at the present rate, Unix seconds; null where nothing costs anything. */
export function runsOutAt({ balance, rate }: Account, at: number): number | null {
  if (rate === 0n) return null;
  const seconds = balance <= 0n ? 0n : balance / rate;
  return Math.min(Math.floor(at) + Number(seconds), SECONDS_MAX);
}

const SECONDS_MAX = 9_223_372_036;

/** Accounts that have anything, in order of owner. @param after the last owner of the page before */
export async function listAccounts(db: Db, at: number, after: string, limit: number): Promise<Account[]> {
  const { rows } = await sql<AccountRow>`
    with owners as (
      (select distinct owner from credit_resources where owner > ${after} order by owner limit ${limit})
      union (select distinct owner from credit_entries where counts and owner > ${after} order by owner limit ${limit})
      order by owner limit ${limit}
    )
    select owners.owner, a.* from owners cross join lateral (${accountOf(sql`owners.owner`, at)}) a
    order by owners.owner`.execute(db);
  return rows.map(readAccount);
}

export interface Charge {
  readonly owner: string;
  readonly ref: string;
  /** Billionths of a credit. */
  readonly nano: bigint;
}

/**
 * What is not charged yet for a period of everything of one kind that is in force, in order of creation. What costs nothing is
 * left out before the limit: it is never charged, and would stand before the rest for ever. What is dated ahead is there now.
 *
 * @param now Unix seconds
 */
export async function listCharges(
  db: Db,
  kind: ResourceKind,
  period: { readonly start: number; readonly end: number },
  now: number,
  limit: number,
): Promise<Charge[]> {
  const { start, end } = period;
  const isThere = now < end ? sql`true` : sql`r.created < ${end}`;
  const { rows } = await sql<{ owner: string; ref: string; created: number; rate: string }>`
    select r.owner, r.item_hash as ref, r.created, (${RATE})::text as rate
    from ${PRICED}
    where r.kind = ${kind} and ${isThere} and ${RATE} > 0
      and not exists (select from credit_entries e where e.key = ${chargeKeyOf(sql`r.item_hash`, start)})
    order by r.created, r.item_hash limit ${limit}`.execute(db);
  return rows.map(({ owner, ref, created, rate }) => ({
    owner,
    ref,
    nano: chargeOf(BigInt(rate), chargedFrom(created, start, now), end),
  }));
}
