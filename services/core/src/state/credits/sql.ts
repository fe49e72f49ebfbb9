import { MIB_BYTES } from '@skerry/protocol';
import { type RawBuilder, sql } from 'kysely';

/** The rules of protocol's credit/costs.ts for rows: what is added up in the database is not read by this process. */

type Of = RawBuilder<unknown>;

/** Whether the price step p is that of a kind at a time, Unix seconds. */
const holdsFor = (kind: Of, time: Of) =>
  sql`p.kind = ${kind} and ${time} >= p.from_time and ${time} < p.until_time`;

/** A price step p that holds for what was made at a time. */
export const IS_PRICE = holdsFor(sql`r.kind`, sql`r.created`);

/** What costs, r, with the price p that holds for each. */
export const PRICED = sql`credit_resources r join credit_price_steps p on ${IS_PRICE}`;

/** Billionths of a credit per second, as `rateOf` has it, by the price p. */
export const rateBy = (units: Of, mib: Of) => sql`${units} * p.compute_unit + ${mib} * p.storage_mib`;

/** Of each row of PRICED. */
export const RATE = rateBy(sql`r.units`, sql`r.mib`);

/** The rate of what is not there yet; no row where there is no price. */
export const rateOfNew = (kind: Of, time: Of, units: Of, mib: Of) =>
  sql`select ${rateBy(units, mib)} from credit_price_steps p where ${holdsFor(kind, time)}`;

/** What a file counts, as `storageNeeds` has it; null where its size is. */
export const mibOf = (sizeBytes: Of) => sql`greatest(1, ceil(${sizeBytes}::numeric / ${MIB_BYTES}::numeric))`;

/** As `chargeKey` spells it. @param periodStart Unix seconds */
export const chargeKeyOf = (ref: Of, periodStart: number) =>
  sql`${ref} || '@' || ${String(periodStart)}::text`;
