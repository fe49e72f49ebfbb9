import { AppError } from '@skerry/protocol';
import type pg from 'pg';
import { ABI_LIMITS } from './abi/types.ts';
import { SETTINGS_OWNER } from './store/scans.ts';

export interface WatchLimits {
  /** Contracts that one owner may have indexed. */
  readonly watchesPerOwner: number;
  /** Those that all owners together may, beside the settings and the exempt ones. */
  readonly watchesMax: number;
  /** Addresses without limits, of which nothing counts: keys are free, and strangers can take all there is for strangers. */
  readonly exemptOwners: readonly string[];
  /** Whole credits that an owner of standing has: keys are free, credit is not. */
  readonly standingCredits: number;
}

/** Who asks. */
export interface Asker {
  readonly owner: string;
  /** Whole credits that they have; undefined where there is no credit that anybody could have. */
  readonly credits?: bigint | undefined;
}

/** Of what there is for all owners, one part in so many is for those of standing alone: however many keys strangers have, they never take it. */
const STANDING_PART = 2;

/** How much of something those have who have no standing can have together. */
const freeOf = (max: number) => max - Math.floor(max / STANDING_PART);

const standsApart = ({ credits }: Asker, { standingCredits }: WatchLimits) =>
  standingCredits > 0 && credits !== undefined;

/** Whether an owner has what strangers have not: what they ask for now is noted as such. */
export const hasStanding = (asker: Asker, limits: WatchLimits | undefined): boolean =>
  limits !== undefined && standsApart(asker, limits) && asker.credits! >= BigInt(limits.standingCredits);

/** What owners have of something. */
interface Taken {
  /** All of them together. */
  readonly all: number;
  /** Those who had no standing when they asked, whatever others have of the same. */
  readonly free: number;
}

/**
 * Why there are no more of something for whoever asks; undefined where there are.
 * @param taken with what is asked for
 * @param before without; who adds nothing is not refused
 * @param what they are, such as `contracts indexed`
 */
function whyNotForAll(
  asker: Asker,
  { taken, before, max, what }: { taken: Taken; before: Taken; max: number; what: string },
  limits: WatchLimits,
): string | undefined {
  if (taken.all > Math.max(max, before.all)) return `all owners together can have ${max} ${what}`;
  const isFree = !standsApart(asker, limits) || hasStanding(asker, limits);
  if (isFree || taken.free <= Math.max(freeOf(max), before.free)) return undefined;
  return `owners who have less than ${limits.standingCredits} credits can have ${freeOf(max)} of the ${max} ${what}`;
}

/** Whose requests count for nobody. */
const uncountedOf = ({ exemptOwners }: WatchLimits) => [SETTINGS_OWNER, ...exemptOwners];

/**
 * Of an owner whose newest request is there already. Throws WATCH_LIMIT_REACHED.
 * @param isNew whether they had not asked for the contract before: otherwise all have as many as they had
 */
export async function checkWatches(
  client: pg.PoolClient,
  asker: Asker,
  isNew: boolean,
  limits: WatchLimits,
): Promise<void> {
  const { rows } = await client.query<Taken & { own: number }>(
    `select count(*) filter (where owner = $1)::integer as own, count(*)::integer as all,
       count(*) filter (where not standing)::integer as free
     from indexer_watches where owner <> all($2::text[])`,
    [asker.owner, uncountedOf(limits)],
  );
  const { own, ...taken } = rows[0]!;
  const { watchesPerOwner, watchesMax: max } = limits;
  if (own > watchesPerOwner) throw refused(`one owner can have ${watchesPerOwner} contracts indexed here`);
  const before = isNew ? { all: taken.all - 1, free: taken.free - 1 } : taken;
  const why = whyNotForAll(asker, { taken, before, max, what: 'contracts indexed here' }, limits);
  if (why !== undefined) throw refused(why);
}

interface DeclaredEvents extends Taken {
  /** By the owner, of the contract; null where they declared none. */
  readonly ofContract: number | null;
  /** By the owner. */
  readonly own: number;
}

/** Every declaration is gone through at each look at the chain, for as long as anybody asks for the contract. */
export async function countEvents(
  client: pg.PoolClient,
  contractId: number,
  { owner }: Pick<Asker, 'owner'>,
  limits: WatchLimits,
): Promise<DeclaredEvents> {
  const { rows } = await client.query<DeclaredEvents>(
    `with declared as (select contract_id, owner, standing, id from indexer_abis cross join unnest(event_ids) as id),
     counted as (
       select contract_id, owner, standing, id from declared d where owner <> all($3::text[]) and not exists (
         select from declared s where s.contract_id = d.contract_id and s.id = d.id and s.owner = any($3)))
     select (select cardinality(event_ids) from indexer_abis where contract_id = $1 and owner = $2) as "ofContract",
       count(distinct (contract_id, id)) filter (where owner = $2)::integer as own,
       count(distinct (contract_id, id))::integer as all,
       count(distinct (contract_id, id)) filter (where not standing)::integer as free
     from counted`,
    [contractId, owner, uncountedOf(limits)],
  );
  return rows[0]!;
}

/**
 * Of what an owner has declared already. Throws WATCH_LIMIT_REACHED.
 * @param before what owners had declared before
 */
export async function checkEvents(
  client: pg.PoolClient,
  contractId: number,
  asker: Asker,
  before: Taken,
  limits: WatchLimits,
): Promise<void> {
  const taken = await countEvents(client, contractId, asker, limits);
  const { eventsPerOwner, eventsOfOneOwner, eventsOfOwners: max } = ABI_LIMITS;
  if (taken.ofContract! > eventsPerOwner)
    throw refused(`one owner can declare ${eventsPerOwner} events of a contract here`);
  if (taken.own > eventsOfOneOwner)
    throw refused(`one owner can declare ${eventsOfOneOwner} events of all contracts here`);
  const why = whyNotForAll(asker, { taken, before, max, what: 'events declared here' }, limits);
  if (why !== undefined) throw refused(why);
}

/**
 * What owners of standing declared of a contract and left is of those who still ask for it: where these have none, it is of what
 * there is for strangers.
 * @returns whether there is room for it there, or it is not of that
 */
export async function leaveToStrangers(
  client: pg.PoolClient,
  contractId: number,
  owner: string,
  limits: WatchLimits,
): Promise<boolean> {
  if (limits.standingCredits === 0) return true;
  const { rowCount } = await client.query(
    `update indexer_abis a set standing = false where contract_id = $1 and standing
       and not exists (select from indexer_watches w where w.contract_id = $1 and w.owner = a.owner)
       and not exists (select from indexer_watches w where w.contract_id = $1 and (w.standing or w.owner = any($2::text[])))`,
    [contractId, uncountedOf(limits)],
  );
  if (rowCount === 0) return true;
  const { free } = await countEvents(client, contractId, { owner }, limits);
  return free <= freeOf(ABI_LIMITS.eventsOfOwners);
}

/** Events, each as often as earlier blocks of it were asked for and are not joined yet: each such part is a scan that every look lists. */
export const EARLIER = { perOwner: 512, max: 4_096 } as const;

/** Why earlier blocks of so many more events are not to be read; undefined where they are. What is asked for besides is had. */
export async function refuseEarlier(
  client: pg.PoolClient,
  asker: Asker,
  events: number,
  limits: WatchLimits,
): Promise<AppError | undefined> {
  const { rows } = await client.query<Taken & { own: number }>(
    `select coalesce(sum(cardinality(topics)) filter (where owner = $1), 0)::integer as own,
       coalesce(sum(cardinality(topics)), 0)::integer as all,
       coalesce(sum(cardinality(topics)) filter (where not standing), 0)::integer as free
     from indexer_scans where to_block is not null and (owner is null or owner <> all($2::text[]))`,
    [asker.owner, uncountedOf(limits)],
  );
  const { own, ...before } = rows[0]!;
  const rest = 'those of this contract are read from where they were read before';
  if (own + events > EARLIER.perOwner)
    return refused(`one owner can extend ${EARLIER.perOwner} events to earlier blocks here; ${rest}`);
  const what = 'events being extended to earlier blocks here';
  const taken = { all: before.all + events, free: before.free + events };
  const why = whyNotForAll(asker, { taken, before, max: EARLIER.max, what }, limits);
  return why === undefined ? undefined : refused(`${why}; ${rest}`);
}

const refused = (message: string) => new AppError('WATCH_LIMIT_REACHED', message);
