import { inTransaction } from '@skerry/database';
import { AppError, parseEvmAddress } from '@skerry/protocol';
import type pg from 'pg';
import { parseAbi } from './abi/declaration.ts';
import { topicOf } from './abi/topic.ts';
import { declarationOf, type EventDefinition, signatureOf } from './abi/types.ts';
import { ANY_TOPIC } from './chain/claims.ts';
import { findNetwork } from './store/networks.ts';
import {
  type Asker,
  checkEvents,
  checkWatches,
  countEvents,
  hasStanding,
  leaveToStrangers,
  refuseEarlier,
  type WatchLimits,
} from './watch-limits.ts';

export interface WatchRequest extends Asker {
  /** Name of a network that this node indexes. */
  readonly network: string;
  readonly contract: string;
  /** JSON ABI, or a list of event declarations. */
  readonly abi: unknown;
  /** The first block that is wanted. */
  readonly startBlock: number;
  /** Whether its transactions are kept too. */
  readonly transactions?: boolean;
}

/**
 * Asks for a contract to be indexed. Asking again changes what is asked for: the events of another ABI come before those that its
 * owner declared earlier, an earlier block extends what is read backwards. Only what was not read yet is read.
 *
 * Throws NETWORK_NOT_FOUND, INVALID_ADDRESS, INVALID_ABI, INVALID_PARAMETERS, WATCH_LIMIT_REACHED; the last also where all is done
 * but that blocks are read which come before those that others asked for.
 *
 * @param given the limits of the node; undefined for the settings, which ask for whatever they name
 */
export async function watchContract(
  pool: pg.Pool,
  request: WatchRequest,
  given?: WatchLimits,
): Promise<void> {
  const limits = given?.exemptOwners.includes(request.owner) ? undefined : given;
  const address = parseEvmAddress(request.contract);
  const events = parseAbi(request.abi);
  const { startBlock } = request;
  if (!Number.isSafeInteger(startBlock) || startBlock < 0)
    throw new AppError('INVALID_PARAMETERS', 'the start block is a whole number from 0');
  const network = await findNetwork(pool, request.network);
  if (!network) throw new AppError('NETWORK_NOT_FOUND', `this node does not index ${request.network}`);
  const refusal = await inTransaction(pool, async (client) => {
    await client.query('select from indexer_networks where id = $1 for no key update', [network.id]);
    const contract = await ensureContract(client, network.id, address);
    const standing = hasStanding(request, limits);
    const isNew = await ensureWatch(client, contract.id, request, standing);
    if (limits) await checkWatches(client, request, isNew, limits);
    const eventIds = await ensureEventTypes(client, events);
    const before = limits && (await countEvents(client, contract.id, request, limits));
    const hasDeclared = await declareEvents(client, contract.id, { ...request, eventIds, standing, isNew });
    if (limits && before && hasDeclared) await checkEvents(client, contract.id, request, before, limits);
    // What was read for others is still being deleted: reading begins when it is gone.
    if (contract.removed) return undefined;
    const place = { networkId: network.id, id: contract.id, limits, asker: request };
    return ensureReading(client, place, events, request);
  });
  if (refusal) throw refusal;
}

/** Of one contract that is asked for again: now that what was read of it before is deleted it is read from the start. */
export async function readAgain(
  client: pg.PoolClient,
  contract: { readonly networkId: number; readonly id: number },
): Promise<void> {
  const { id } = contract;
  await client.query('update indexer_contracts set removed = false where id = $1', [id]);
  await dropLeft(client, id);
  const { rows } = await client.query<
    Pick<WatchRequest, 'startBlock' | 'transactions' | 'owner'> & { events: EventDefinition[] }
  >(
    `select owner, start_block as "startBlock", transactions, (
       select json_agg(t.definition) from indexer_event_types t where t.id in (
         select unnest(event_ids) from indexer_abis a where a.contract_id = $1 and a.owner = w.owner)) as events
     from indexer_watches w where contract_id = $1 order by start_block`,
    [id],
  );
  for (const { events, owner, ...request } of rows)
    await ensureReading(client, { ...contract, limits: undefined, asker: { owner } }, events, request);
}

interface Place {
  readonly networkId: number;
  /** The contract's. */
  readonly id: number;
  /** Within which earlier blocks of what is read already are read; undefined for as many as there are. */
  readonly limits: WatchLimits | undefined;
  readonly asker: Asker;
}

/** @returns why earlier blocks are not read; undefined where none are asked for, or they are */
async function ensureReading(
  client: pg.PoolClient,
  place: Place,
  events: readonly EventDefinition[],
  { startBlock, transactions = false }: Pick<WatchRequest, 'startBlock' | 'transactions'>,
): Promise<AppError | undefined> {
  const refusal = await ensureScans(client, place, 'events', topicsOf(events), startBlock);
  if (!transactions) return refusal;
  return (await ensureScans(client, place, 'transactions', [''], startBlock)) ?? refusal;
}

/**
 * Takes an owner's wish back; the last one's takes the contract's rows with it. Throws NETWORK_NOT_FOUND, WATCH_NOT_FOUND.
 *
 * @param limits the limits of the node
 */
export async function unwatchContract(
  pool: pg.Pool,
  request: Pick<WatchRequest, 'network' | 'contract' | 'owner'>,
  limits: WatchLimits,
): Promise<void> {
  const address = parseEvmAddress(request.contract);
  const network = await findNetwork(pool, request.network);
  if (!network) throw new AppError('NETWORK_NOT_FOUND', `this node does not index ${request.network}`);
  await inTransaction(pool, async (client) => {
    await client.query('select from indexer_networks where id = $1 for no key update', [network.id]);
    const { rows } = await client.query<{ id: number }>(
      `delete from indexer_watches w using indexer_contracts c
       where c.id = w.contract_id and c.network_id = $1 and c.address = $2 and w.owner = $3 returning c.id`,
      [network.id, address, request.owner],
    );
    const id = rows[0]?.id;
    if (id === undefined)
      throw new AppError(
        'WATCH_NOT_FOUND',
        `${request.owner} has not asked for ${address} on ${request.network}`,
      );
    const rest = await client.query('select from indexer_watches where contract_id = $1 limit 1', [id]);
    if (rest.rowCount !== 0) {
      await leaveEvents(client, id, request.owner);
      if (!(await leaveToStrangers(client, id, request.owner, limits))) await readNoFurther(client, id);
      return;
    }
    await client.query('delete from indexer_abis where contract_id = $1', [id]);
    await client.query('delete from indexer_scans where contract_id = $1', [id]);
    await client.query('update indexer_contracts set removed = true where id = $1', [id]);
  });
}

interface ContractRow {
  readonly id: number;
  /** Nobody asked for it for a while: what was read is being deleted. */
  readonly removed: boolean;
}

async function ensureContract(
  client: pg.PoolClient,
  networkId: number,
  address: string,
): Promise<ContractRow> {
  await client.query(
    'insert into indexer_contracts (network_id, address) values ($1, $2) on conflict do nothing',
    [networkId, address],
  );
  const { rows } = await client.query<ContractRow>(
    'select id, removed from indexer_contracts where network_id = $1 and address = $2',
    [networkId, address],
  );
  return rows[0]!;
}

/** @returns whether its owner had not asked for the contract before */
async function ensureWatch(
  client: pg.PoolClient,
  contractId: number,
  { owner, startBlock, transactions = false }: WatchRequest,
  standing: boolean,
): Promise<boolean> {
  const { rows } = await client.query<{ isNew: boolean }>(
    `insert into indexer_watches as old (contract_id, owner, start_block, transactions, standing) values ($1, $2, $3, $4, $5)
     on conflict (contract_id, owner) do update set
       start_block = least(old.start_block, excluded.start_block), transactions = old.transactions or excluded.transactions,
       standing = old.standing or excluded.standing
     returning xmax = 0 as "isNew"`,
    [contractId, owner, startBlock, transactions, standing],
  );
  return rows[0]!.isNew;
}

async function ensureEventTypes(
  client: pg.PoolClient,
  events: readonly EventDefinition[],
): Promise<number[]> {
  const declarations = events.map(declarationOf);
  await client.query(
    `insert into indexer_event_types (declaration, name, signature, definition)
     select distinct on (1) * from unnest($1::text[], $2::text[], $3::text[], $4::jsonb[]) on conflict do nothing`,
    [
      declarations,
      events.map(({ name }) => name),
      events.map(signatureOf),
      events.map((event) => JSON.stringify(event)),
    ],
  );
  const { rows } = await client.query<{ id: number; declaration: string }>(
    'select id, declaration from indexer_event_types where declaration = any($1)',
    [declarations],
  );
  const ids = new Map(rows.map(({ id, declaration }) => [declaration, id]));
  return [...new Set(declarations.map((declaration) => ids.get(declaration)!))];
}

interface Declaring {
  readonly owner: string;
  readonly eventIds: readonly number[];
  readonly standing: boolean;
  /** Whether the owner had not asked for the contract, or no more. */
  readonly isNew: boolean;
}

/**
 * An owner has one ABI of a contract, which has each event once: what is declared last comes first. However often somebody
 * declares, it takes no more than the events do, and keeps its owner's place among others. What was declared with standing stays
 * so for as long as its owner goes on to ask for it and adds nothing without.
 *
 * @returns whether anything is declared otherwise than before
 */
async function declareEvents(
  client: pg.PoolClient,
  contractId: number,
  { owner, eventIds, standing, isNew }: Declaring,
): Promise<boolean> {
  const { rows } = await client.query<{ known: number[]; stood: boolean }>(
    'select event_ids as known, standing as stood from indexer_abis where contract_id = $1 and owner = $2',
    [contractId, owner],
  );
  const [before] = rows;
  if (!before) {
    await client.query(
      `insert into indexer_abis (contract_id, version, owner, event_ids, standing)
       select $1, coalesce(max(version), 0) + 1, $2, $3::integer[], $4 from indexer_abis where contract_id = $1`,
      [contractId, owner, eventIds, standing],
    );
    return true;
  }
  const { known, stood } = before;
  const addsNone = !isNew && eventIds.every((id) => known.includes(id));
  const { rowCount } = await client.query(
    `update indexer_abis set event_ids = $3, standing = $4, added_at = clock_timestamp()
     where contract_id = $1 and owner = $2 and (event_ids, standing) <> ($3, $4)`,
    [contractId, owner, [...new Set([...eventIds, ...known])], standing || (stood && addsNone)],
  );
  return rowCount !== 0;
}

/**
 * By what an owner declared who asks no more, logs were read and go on to be, for as long as others ask for the contract: it stays,
 * but for what somebody else declared too.
 */
async function leaveEvents(client: pg.PoolClient, contractId: number, owner: string): Promise<void> {
  await client.query(
    `with others as (
       select distinct id from indexer_abis cross join unnest(event_ids) as id where contract_id = $1 and owner <> $2)
     update indexer_abis set added_at = clock_timestamp(), event_ids = array(
       select id from unnest(event_ids) with ordinality as e (id, place)
       where id not in (select id from others) order by place)
     where contract_id = $1 and owner = $2`,
    [contractId, owner],
  );
  await client.query("delete from indexer_abis where contract_id = $1 and owner = $2 and event_ids = '{}'", [
    contractId,
    owner,
  ]);
}

/** What of a contract was declared only by those who ask for it no more. */
async function dropLeft(client: pg.PoolClient, contractId: number): Promise<void> {
  await client.query(
    `delete from indexer_abis a where contract_id = $1 and not exists (
       select from indexer_watches w where w.contract_id = a.contract_id and w.owner = a.owner)`,
    [contractId],
  );
}

/**
 * Of a contract that others go on to ask for: by what those declared who left it no log is read any more. What others read is as it
 * was, or else whoever asks and withdraws would have it read from the start again and again. Rows that were read stay as long as the
 * contract.
 */
async function readNoFurther(client: pg.PoolClient, contractId: number): Promise<void> {
  await dropLeft(client, contractId);
  const { rows } = await client.query<{ definition: EventDefinition }>(
    `select definition from indexer_event_types
     where id in (select unnest(event_ids) from indexer_abis where contract_id = $1)`,
    [contractId],
  );
  await client.query(
    `update indexer_scans set topics = array(
       select topic from unnest(topics) with ordinality as t (topic, place) where topic = any($2) order by place)
     where contract_id = $1 and kind = 'events' and not topics <@ $2::text[]`,
    [contractId, topicsOf(rows.map(({ definition }) => definition))],
  );
  await client.query(
    "delete from indexer_scans where contract_id = $1 and kind = 'events' and topics = '{}'",
    [contractId],
  );
}

/** By what logs of events are asked for. */
const topicsOf = (events: readonly EventDefinition[]): string[] => [
  ...new Set(events.map((event) => (event.anonymous ? ANY_TOPIC : topicOf(event)))),
];

interface ScanReach {
  readonly topics: string[];
  readonly fromBlock: number;
}

/**
 * Scans for what no scan covers yet: new topics from the start, known ones for the blocks before where they begin.
 *
 * @returns why there is none for such earlier blocks
 */
async function ensureScans(
  client: pg.PoolClient,
  { networkId, id, limits, asker }: Place,
  kind: 'events' | 'transactions',
  topics: readonly string[],
  startBlock: number,
): Promise<AppError | undefined> {
  const { rows } = await client.query<ScanReach>(
    `select topics, from_block as "fromBlock" from indexer_scans where contract_id = $1 and kind = $2`,
    [id, kind],
  );
  // Scans that came to their end are kept: they say what was read.
  const earliest = new Map<string, number>();
  for (const scan of rows)
    for (const topic of scan.topics)
      earliest.set(topic, Math.min(scan.fromBlock, earliest.get(topic) ?? scan.fromBlock));
  const groups = new Map<number | null, string[]>();
  for (const topic of topics) {
    const begins = earliest.get(topic);
    if (begins !== undefined && begins <= startBlock) continue;
    const end = begins === undefined ? null : begins - 1;
    groups.set(end, [...(groups.get(end) ?? []), topic]);
  }
  const earlier = [...groups].flatMap(([end, wanted]) => (end === null ? [] : wanted));
  const refusal =
    limits && earlier.length > 0 ? await refuseEarlier(client, asker, earlier.length, limits) : undefined;
  const begun = [...groups].filter(([end]) => end === null || !refusal);
  if (begun.length > 0)
    await client.query(
      'update indexer_networks set progress_at = now(), backfilled_at = now() where id = $1',
      [networkId],
    );
  for (const [toBlock, wanted] of begun)
    await client.query(
      `insert into indexer_scans (network_id, contract_id, kind, topics, from_block, next_block, to_block, owner, standing)
       values ($1, $2, $3, $4, $5, $5, $6, $7, $8)`,
      [networkId, id, kind, wanted, startBlock, toBlock, asker.owner, hasStanding(asker, limits)],
    );
  return refusal;
}
