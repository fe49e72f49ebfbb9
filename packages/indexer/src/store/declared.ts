import type pg from 'pg';
import type { EventDefinition } from '../abi/types.ts';
import type { ClaimedEvent } from '../chain/claims.ts';
import { SETTINGS_OWNER } from './scans.ts';

/** Events of contracts that are kept as they were last read: each look at a chain asks for all of them. */
const KEPT_EVENTS_MAX = 32_768;

interface Declared {
  /** Another one whenever somebody declares, asks, or asks no more. */
  readonly mark: string;
  readonly events: readonly ClaimedEvent[];
}

/** By contract, the one that was asked for longest ago first. */
const kept = new Map<number, Declared>();
let keptEvents = 0;

function keep(contractId: number, declared: Declared): void {
  keptEvents += declared.events.length - (kept.get(contractId)?.events.length ?? 0);
  kept.delete(contractId);
  kept.set(contractId, declared);
  for (const [oldest, { events }] of kept) {
    if (keptEvents <= KEPT_EVENTS_MAX) return;
    kept.delete(oldest);
    keptEvents -= events.length;
  }
}

/**
 * Events of each contract's ABIs, in the order in which a log is read by them: those of the settings, then those of whoever
 * asked first and still does, and of each owner the newest first. Anybody may ask for a contract: what others read of
 * it must not follow from that. A contract of which nothing was declared since gives the same list again, and costs no reading of it.
 */
export async function listContractEvents(
  db: pg.Pool | pg.PoolClient,
  contractIds: readonly number[],
): Promise<Map<number, readonly ClaimedEvent[]>> {
  const before = new Map<number, Declared>();
  for (const id of contractIds) {
    const known = kept.get(id);
    if (known) before.set(id, known);
  }
  // When a row was written tells apart databases that give the same numbers, as this one before and after it was restored.
  const { rows } = await db.query<{
    contractId: number;
    mark: string;
    id: number | null;
    definition: EventDefinition | null;
  }>(
    `with abis as (
       select *, not exists (select from indexer_watches w where w.contract_id = a.contract_id and w.owner = a.owner) as has_left
       from indexer_abis a where contract_id = any($1::integer[])),
     marks as (
       select contract_id, md5(string_agg(
         concat_ws(' ', contract_id, version, owner, has_left, added_at, event_ids), ',' order by version)) as mark
       from abis group by contract_id),
     places as (
       select contract_id, e.id,
         row_number() over (order by owner <> $2, has_left, version, e.place) as place
       from abis join marks using (contract_id) cross join unnest(event_ids) with ordinality as e (id, place)
       where mark <> all($3::text[])),
     declared as (select contract_id, id, min(place) as place from places group by contract_id, id)
     select m.contract_id as "contractId", mark, t.id, t.definition
     from marks m left join (declared d join indexer_event_types t on t.id = d.id) on d.contract_id = m.contract_id
     order by m.contract_id, d.place`,
    [contractIds, SETTINGS_OWNER, [...before.values()].map(({ mark }) => mark)],
  );
  const found = new Map<number, { readonly mark: string; readonly events: ClaimedEvent[] }>();
  for (const { contractId, mark, id, definition } of rows) {
    const one = found.get(contractId) ?? { mark, events: [] };
    if (id !== null && definition !== null) one.events.push({ id, definition });
    found.set(contractId, one);
  }
  const declared = new Map<number, readonly ClaimedEvent[]>();
  for (const [contractId, read] of found) {
    const known = before.get(contractId);
    const one = known?.mark === read.mark ? known : read;
    keep(contractId, one);
    declared.set(contractId, one.events);
  }
  return declared;
}
