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
}

/** Whose requests count for nobody. */
const uncountedOf = ({ exemptOwners }: WatchLimits) => [SETTINGS_OWNER, ...exemptOwners];

/** Of an owner whose newest request is there already. Throws WATCH_LIMIT_REACHED. */
export async function checkWatches(client: pg.PoolClient, owner: string, limits: WatchLimits): Promise<void> {
  const { rows } = await client.query<{ own: number; all: number }>(
    `select count(*) filter (where owner = $1)::integer as own, count(*)::integer as all
     from indexer_watches where owner <> all($2::text[])`,
    [owner, uncountedOf(limits)],
  );
  const { own, all } = rows[0]!;
  const { watchesPerOwner, watchesMax } = limits;
  if (own > watchesPerOwner) throw refused(`one owner can have ${watchesPerOwner} contracts indexed here`);
  if (all > watchesMax) throw refused(`all owners together can have ${watchesMax} contracts indexed here`);
}

/** Every declaration is gone through at each look at the chain, for as long as anybody asks for the contract. Throws WATCH_LIMIT_REACHED. */
export async function checkEvents(
  client: pg.PoolClient,
  contractId: number,
  owner: string,
  limits: WatchLimits,
): Promise<void> {
  const { rows } = await client.query<{ ofContract: number; own: number; all: number }>(
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
  const { ofContract, own, all } = rows[0]!;
  const { eventsPerOwner, eventsOfOneOwner, eventsOfOwners } = ABI_LIMITS;
  if (ofContract > eventsPerOwner)
    throw refused(`one owner can declare ${eventsPerOwner} events of a contract here`);
  if (own > eventsOfOneOwner)
    throw refused(`one owner can declare ${eventsOfOneOwner} events of all contracts here`);
  if (all > eventsOfOwners) throw refused(`all owners together can declare ${eventsOfOwners} events here`);
}

/** Events, each as often as earlier blocks of it were asked for and are not joined yet: each such part is a scan that every look lists. */
export const EARLIER = { perOwner: 512, max: 4_096 } as const;

/** Why earlier blocks of so many more events are not to be read; undefined where they are. What is asked for besides is had. */
export async function refuseEarlier(
  client: pg.PoolClient,
  owner: string,
  events: number,
  limits: WatchLimits,
): Promise<AppError | undefined> {
  const { rows } = await client.query<{ own: number; all: number }>(
    `select coalesce(sum(cardinality(topics)) filter (where owner = $1), 0)::integer as own,
       coalesce(sum(cardinality(topics)), 0)::integer as all
     from indexer_scans where to_block is not null and (owner is null or owner <> all($2::text[]))`,
    [owner, uncountedOf(limits)],
  );
  const { own, all } = rows[0]!;
  const rest = 'those of this contract are read from where they were read before';
  if (own + events > EARLIER.perOwner)
    return refused(`one owner can extend ${EARLIER.perOwner} events to earlier blocks here; ${rest}`);
  if (all + events > EARLIER.max)
    return refused(`all owners together can extend ${EARLIER.max} events to earlier blocks here; ${rest}`);
  return undefined;
}

const refused = (message: string) => new AppError('WATCH_LIMIT_REACHED', message);
