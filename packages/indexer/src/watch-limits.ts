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
  /** Whole credits that they have; none where nobody says. */
  readonly credits?: bigint | undefined;
}

/** Of what there is for all owners, one part in so many is for those of standing alone: however many keys strangers have, they never take it. */
const STANDING_PART = 2;

/**
 * Why there are no more of something for whoever asks; undefined where there are.
 * @param all what all owners have of it, with what is asked for
 * @param what they are, such as `contracts indexed`
 */
function whyNotForAll(
  { credits = 0n }: Asker,
  [all, max]: readonly [number, number],
  what: string,
  { standingCredits }: WatchLimits,
): string | undefined {
  if (all > max) return `all owners together can have ${max} ${what}`;
  const kept = Math.floor(max / STANDING_PART);
  if (all <= max - kept || standingCredits === 0 || credits >= BigInt(standingCredits)) return undefined;
  return `the last ${kept} of ${max} ${what} are for owners who have ${standingCredits} credits or more`;
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
  const { rows } = await client.query<{ own: number; all: number }>(
    `select count(*) filter (where owner = $1)::integer as own, count(*)::integer as all
     from indexer_watches where owner <> all($2::text[])`,
    [asker.owner, uncountedOf(limits)],
  );
  const { own, all } = rows[0]!;
  const { watchesPerOwner, watchesMax } = limits;
  if (own > watchesPerOwner) throw refused(`one owner can have ${watchesPerOwner} contracts indexed here`);
  const why = whyNotForAll(asker, [all, watchesMax], 'contracts indexed here', limits);
  if (isNew && why) throw refused(why);
}

interface DeclaredEvents {
  /** By the owner, of the contract; null where they declared none. */
  readonly ofContract: number | null;
  /** By the owner. */
  readonly own: number;
  /** By all owners. */
  readonly all: number;
}

/** Every declaration is gone through at each look at the chain, for as long as anybody asks for the contract. */
export async function countEvents(
  client: pg.PoolClient,
  contractId: number,
  { owner }: Asker,
  limits: WatchLimits,
): Promise<DeclaredEvents> {
  const { rows } = await client.query<DeclaredEvents>(
    `with declared as (select contract_id, owner, id from indexer_abis cross join unnest(event_ids) as id),
     counted as (
       select contract_id, owner, id from declared d where owner <> all($3::text[]) and not exists (
         select from declared s where s.contract_id = d.contract_id and s.id = d.id and s.owner = any($3)))
     select (select cardinality(event_ids) from indexer_abis where contract_id = $1 and owner = $2) as "ofContract",
       count(distinct (contract_id, id)) filter (where owner = $2)::integer as own,
       count(distinct (contract_id, id))::integer as all
     from counted`,
    [contractId, owner, uncountedOf(limits)],
  );
  return rows[0]!;
}

/**
 * Of what an owner has declared already. Throws WATCH_LIMIT_REACHED.
 * @param before how many events all owners had declared before
 */
export async function checkEvents(
  client: pg.PoolClient,
  contractId: number,
  asker: Asker,
  before: number,
  limits: WatchLimits,
): Promise<void> {
  const { ofContract, own, all } = await countEvents(client, contractId, asker, limits);
  const { eventsPerOwner, eventsOfOneOwner, eventsOfOwners } = ABI_LIMITS;
  if (ofContract! > eventsPerOwner)
    throw refused(`one owner can declare ${eventsPerOwner} events of a contract here`);
  if (own > eventsOfOneOwner)
    throw refused(`one owner can declare ${eventsOfOneOwner} events of all contracts here`);
  const why = whyNotForAll(asker, [all, eventsOfOwners], 'events declared here', limits);
  if (all > before && why) throw refused(why);
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
  const { rows } = await client.query<{ own: number; all: number }>(
    `select coalesce(sum(cardinality(topics)) filter (where owner = $1), 0)::integer as own,
       coalesce(sum(cardinality(topics)), 0)::integer as all
     from indexer_scans where to_block is not null and (owner is null or owner <> all($2::text[]))`,
    [asker.owner, uncountedOf(limits)],
  );
  const { own, all } = rows[0]!;
  const rest = 'those of this contract are read from where they were read before';
  if (own + events > EARLIER.perOwner)
    return refused(`one owner can extend ${EARLIER.perOwner} events to earlier blocks here; ${rest}`);
  const what = 'events being extended to earlier blocks here';
  const why = whyNotForAll(asker, [all + events, EARLIER.max], what, limits);
  return why === undefined ? undefined : refused(`${why}; ${rest}`);
}

const refused = (message: string) => new AppError('WATCH_LIMIT_REACHED', message);
