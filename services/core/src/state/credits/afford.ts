import { creditsOf, holdOf } from '@skerry/protocol';
import { type Kysely, sql } from 'kysely';
import { creditKey, isCreditKeyIn } from '../../store/dependency-keys.ts';
import { effectiveTimeOf } from '../../store/messages/effective.ts';
import type { Schema } from '../../store/schema.ts';
import { mibOf, PRICED, RATE, rateOfNew } from './sql.ts';
import type { Resource } from './write.ts';

/** A message that would make something that costs. */
export interface Wish {
  readonly itemHash: string;
  readonly owner: string;
  /** Its effective time, Unix seconds. */
  readonly time: number;
  readonly resource: Resource;
}

interface PricedWish {
  readonly wish: Wish;
  /** Billionths of a credit, as of the message's time, without what was charged for the message itself. */
  readonly balance: bigint;
  /** Per second, of what the owner had before it. */
  readonly earlierRate: bigint;
  /** Per second, its own. */
  readonly rate: bigint;
  readonly isCounted: boolean;
}

/** What a batch may afford. */
export interface Affordance {
  readonly isEnforced: boolean;
  /** Why there is not enough credit for it, as of its own time; undefined where there is. */
  findShortage(itemHash: string): string | undefined;
  /** What was decided of it: others of the batch come after it. */
  note(itemHash: string, isProcessed: boolean): void;
}

const FREE: Affordance = { isEnforced: false, findShortage: () => undefined, note: () => {} };

const isBefore = (a: Pick<Wish, 'time' | 'itemHash'>, b: Pick<Wish, 'time' | 'itemHash'>) =>
  a.time !== b.time ? a.time < b.time : a.itemHash < b.itemHash;

/**
 * Each wish adds up what came since the one before it of the same owner: all that an owner ever had is read once, however many
 * messages of theirs a batch has. What a message makes is charged from when it comes, also where its owner's clock is ahead: such a
 * charge is dated before the message, and by it nothing is thrown out that there was enough for.
 *
 * @param sizes of files that the same batch brings
 * @param latest no credit and no price counts that is dated later, Unix seconds
 */
async function loadPrices(
  db: Kysely<Schema>,
  wishes: readonly Wish[],
  sizes: ReadonlyMap<string, number>,
  latest: number,
): Promise<Map<string, PricedWish>> {
  const needs = wishes.map(({ resource }) => (resource.from === 'needs' ? resource.needs : undefined));
  const files = wishes.map(({ resource }) => (resource.from === 'file' ? resource.fileHash : null));
  const mib = sql`coalesce(w.mib, ${mibOf(sql`coalesce(w.size, f.size_bytes)`)}, 1)`;
  const { rows } = await sql<{
    item_hash: string;
    balance: string;
    earlier: string;
    rate: string;
    is_counted: boolean;
  }>`
    with wishes as (
      select *, least("time", ${latest}::float8) as as_of,
        lag("time", 1, '-infinity') over earlier as since, lag(item_hash, 1, '') over earlier as since_hash
      from (
        select item_hash collate "C" as item_hash, owner, "time", kind, units, mib, file, size from unnest(
          ${wishes.map((wish) => wish.itemHash)}::text[], ${wishes.map((wish) => wish.owner)}::text[],
          ${wishes.map((wish) => wish.time)}::float8[], ${needs.map((one) => one?.kind ?? 'storage')}::text[],
          ${needs.map((one) => one?.units ?? 0)}::bigint[], ${needs.map((one) => one?.mib ?? null)}::bigint[],
          ${files}::text[], ${files.map((hash) => (hash === null ? null : (sizes.get(hash) ?? null)))}::bigint[])
          as asked (item_hash, owner, "time", kind, units, mib, file, size)) asked
      window earlier as (partition by owner order by "time", item_hash))
    select w.item_hash,
      (sum((select coalesce(sum(nano), 0) from credit_entries e
        where e.owner = w.owner and e.counts and e."time" > w.since and e."time" <= w.as_of))
        over earlier - (
          select coalesce(sum(e.nano) filter (where e.kind = 'expense' and e.owner = w.owner and e."time" <= w.as_of), 0)
          from credit_entries e where e.ref = w.item_hash and e.counts))::text as balance,
      (sum((select coalesce(sum(${RATE}), 0) from ${PRICED}
        where r.owner = w.owner and (r.created, r.item_hash) >= (w.since, w.since_hash)
          and (r.created, r.item_hash) < (w."time", w.item_hash)))
        over earlier)::text as earlier,
      (${rateOfNew(sql`w.kind`, sql`w.as_of`, sql`w.units`, mib)})::text as rate,
      exists (select from credit_resources r where r.item_hash = w.item_hash) as is_counted
    from wishes w left join files f on f.hash = w.file
    window earlier as (partition by w.owner order by w."time", w.item_hash)`.execute(db);
  const byHash = new Map(wishes.map((wish) => [wish.itemHash, wish]));
  return new Map(
    rows.map((row) => [
      row.item_hash,
      {
        wish: byHash.get(row.item_hash)!,
        balance: BigInt(row.balance),
        earlierRate: BigInt(row.earlier),
        rate: BigInt(row.rate),
        isCounted: row.is_counted,
      },
    ]),
  );
}

/**
 * Whether owners have the credit for what a batch would make: for a day of it and of all that they had before it, as of
 * each message's effective time. What comes later never matters, so that every node comes to the same end in any order.
 *
 * @param latest no credit and no price counts that is dated later, whatever the dates of the wishes, Unix seconds
 */
export async function loadAffordance(
  db: Kysely<Schema>,
  wishes: readonly Wish[],
  sizes: ReadonlyMap<string, number>,
  latest = Number.POSITIVE_INFINITY,
): Promise<Affordance> {
  if (wishes.length === 0) return FREE;
  const { rows } = await sql<{ enforcement: boolean }>`select enforcement from credit_derivation`.execute(db);
  if (!rows[0]?.enforcement) return FREE;
  const priced = await loadPrices(db, wishes, sizes, latest);
  /** What this batch adds to the rate of an owner, or takes from it. */
  const steps: { readonly wish: Wish; readonly rate: bigint }[] = [];
  return {
    isEnforced: true,
    findShortage(itemHash) {
      const found = priced.get(itemHash);
      if (!found) return undefined;
      const { wish, balance, earlierRate, rate } = found;
      const inBatch = steps
        .filter((step) => step.wish.owner === wish.owner && isBefore(step.wish, wish))
        .reduce((sum, step) => sum + step.rate, 0n);
      const needed = holdOf(earlierRate + inBatch + rate);
      if (balance >= needed) return undefined;
      return `${wish.owner} has ${creditsOf(balance)} credits, but a day of this and of everything before it costs ${-creditsOf(-needed)}`;
    },
    note(itemHash, isProcessed) {
      const found = priced.get(itemHash);
      if (!found || found.isCounted === isProcessed) return;
      steps.push({ wish: found.wish, rate: isProcessed ? found.rate : -found.rate });
    },
  };
}

/** Since when whose balance or rate is another one: for messages after it. */
type Stamp = Pick<Wish, 'itemHash' | 'owner' | 'time'>;

/** Of each owner the first. */
function earliestOf(stamps: readonly Stamp[]): Stamp[] {
  const byOwner = new Map<string, Stamp>();
  for (const stamp of stamps) {
    const known = byOwner.get(stamp.owner);
    if (!known || isBefore(stamp, known)) byOwner.set(stamp.owner, stamp);
  }
  return [...byOwner.values()];
}

/**
 * Messages of owners that come after a stamp, and whose verdict is a matter of credit.
 *
 * @param limit of one owner, of whom there may be more
 * @returns hashes by owner
 */
export async function findLater(
  db: Kysely<Schema>,
  stamps: readonly Stamp[],
  limit: number,
): Promise<Map<string, string[]>> {
  const earliest = earliestOf(stamps);
  const owners = earliest.map(({ owner }) => owner);
  const { rows } = await sql<{ owner: string; item_hash: string }>`
    select s.owner, later.item_hash
    from unnest(${owners}::text[], ${owners.map(creditKey)}::text[], ${earliest.map(({ time }) => time)}::float8[],
      ${earliest.map(({ itemHash }) => itemHash)}::text[]) as s (owner, key, "time", item_hash)
    cross join lateral (
      select d.item_hash from dependencies d join messages m on m.item_hash = d.item_hash
      where d.key = s.key and (${effectiveTimeOf('m')}, m.item_hash) > (s."time", s.item_hash)
      limit ${sql.lit(limit)}) later`.execute(db);
  return new Map(
    [...Map.groupBy(rows, ({ owner }) => owner)].map(([owner, own]) => [
      owner,
      own.map((row) => row.item_hash),
    ]),
  );
}

/** Every message whose verdict is a matter of credit: after other prices. */
export async function findAllCharged(db: Kysely<Schema>): Promise<string[]> {
  const { rows } = await sql<{ item_hash: string }>`
    select item_hash from dependencies where ${isCreditKeyIn('key')}`.execute(db);
  return rows.map((row) => row.item_hash);
}

/**
 * Whether a credit publisher may stop an owner's instances at a time: the last notice says that the credit is used up, and
 * an earlier one announced that it was low.
 */
export async function loadStoppable(
  db: Kysely<Schema>,
  asked: readonly { readonly sender: string; readonly owner: string; readonly time: number }[],
): Promise<(sender: string, owner: string, time: number) => boolean> {
  if (asked.length === 0) return () => false;
  const nameOf = (sender: string, owner: string, time: number) => `${sender} ${owner} ${time}`;
  const { rows } = await sql<{ sender: string; owner: string; time: number }>`
    select q.sender, q.owner, q."time"
    from unnest(${asked.map((one) => one.sender)}::text[], ${asked.map((one) => one.owner)}::text[],
      ${asked.map((one) => one.time)}::float8[]) as q (sender, owner, "time")
    join credit_publishers on address = q.sender
    cross join lateral (
      select state, "time", item_hash from credit_notices n where n.owner = q.owner and n."time" <= q."time"
      order by "time" desc, item_hash desc limit 1) latest
    where (select enforcement from credit_derivation) and latest.state = 'exhausted'
      and exists (select from credit_notices n where n.owner = q.owner and n.state = 'low'
        and n."time" < latest."time")`.execute(db);
  const allowed = new Set(rows.map((row) => nameOf(row.sender, row.owner, row.time)));
  return (sender, owner, time) => allowed.has(nameOf(sender, owner, time));
}
