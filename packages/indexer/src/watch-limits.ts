import { AppError } from '@skerry/protocol';
import type pg from 'pg';
import { ABI_LIMITS } from './abi/types.ts';
import { SETTINGS_OWNER } from './store/scans.ts';

/** Every declaration is gone through at each look at the chain, for as long as anybody asks for the contract. Throws WATCH_LIMIT_REACHED. */
export async function checkEvents(client: pg.PoolClient, contractId: number, owner: string): Promise<void> {
  const { rows } = await client.query<{ ofContract: number; own: number; all: number }>(
    `with declared as (select contract_id, owner, id from indexer_abis cross join unnest(event_ids) as id),
     counted as (
       select contract_id, owner, id from declared d where owner <> $3 and not exists (
         select from declared s where s.contract_id = d.contract_id and s.id = d.id and s.owner = $3))
     select (select cardinality(event_ids) from indexer_abis where contract_id = $1 and owner = $2) as "ofContract",
       count(distinct (contract_id, id)) filter (where owner = $2)::integer as own,
       count(distinct (contract_id, id))::integer as all
     from counted`,
    [contractId, owner, SETTINGS_OWNER],
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
): Promise<AppError | undefined> {
  const { rows } = await client.query<{ own: number; all: number }>(
    `select coalesce(sum(cardinality(topics)) filter (where owner = $1), 0)::integer as own,
       coalesce(sum(cardinality(topics)), 0)::integer as all
     from indexer_scans where to_block is not null`,
    [owner],
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
