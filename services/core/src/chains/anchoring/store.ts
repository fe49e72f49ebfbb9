import { storableJson } from '@skerry/database';
import type { ErrorCode } from '@skerry/protocol';
import { type Kysely, sql, type Transaction } from 'kysely';
import { type AnchorPlace, isAnyNotedAfter } from '../../state/messages/confirmations.ts';
import { IPFS_LIMITS } from '../../store/ipfs/limits.ts';
import type { Schema, VerdictReason } from '../../store/schema.ts';
import { lockWrites } from '../../store/write-lock.ts';
import type { KeptEvent } from './decide.ts';

/** An event of an anchoring contract (table `anchor_events`). */
export interface AnchorEvent extends KeptEvent {
  readonly network: string;
  readonly content: string;
  readonly cid: string | null;
  readonly attempts: number;
  /** Milliseconds since 1970. */
  readonly seenMs: number;
}

/** No try is put off for longer: what is due later was put off by a clock that has been set back since. */
const DUE_WITHIN_MS = 2 * 1_000 * IPFS_LIMITS.retryMaxSeconds;

type Db = Kysely<Schema> | Transaction<Schema>;

const COLUMNS = sql`network, block_number as "blockNumber", log_index as "logIndex", tx_hash as "transactionHash",
  block_time as "blockTime", content, cid, attempts, seen_ms as "seenMs"`;

const isAt = ({ network, blockNumber, logIndex }: AnchorPlace) =>
  sql`network = ${network} and block_number = ${blockNumber} and log_index = ${logIndex}`;

export interface FollowedTo {
  /** Above it events may still change. */
  readonly settledBlock: number;
  readonly readBlock: number | null;
  readonly genesisHash: string | null;
  /** Of the index (`IndexedChain`); null where an older release did. */
  readonly reading: string | null;
  /** What was followed; null where an older release did. */
  readonly contract: string | null;
  readonly startBlock: number | null;
}

export async function loadFollowed(db: Db, network: string): Promise<FollowedTo> {
  const row = await db
    .selectFrom('anchor_networks')
    .selectAll()
    .where('network', '=', network)
    .executeTakeFirst();
  return {
    settledBlock: row?.settled_block ?? -1,
    readBlock: row?.read_block ?? null,
    genesisHash: row?.genesis_hash ?? null,
    reading: row?.reading ?? null,
    contract: row?.contract ?? null,
    startBlock: row?.start_block ?? null,
  };
}

export async function noteFollowed(
  db: Db,
  network: string,
  { settledBlock, readBlock, genesisHash, reading, contract, startBlock }: FollowedTo,
): Promise<void> {
  await sql`update anchor_networks set settled_block = ${settledBlock}, read_block = ${readBlock},
      genesis_hash = ${genesisHash}, reading = ${reading}, contract = ${contract}, start_block = ${startBlock} where network = ${network}`.execute(
    db,
  );
}

/** Takes the one row of the network until the transaction ends: one process follows at a time. */
export async function lockFollowed(trx: Transaction<Schema>, network: string): Promise<FollowedTo> {
  await sql`insert into anchor_networks (network) values (${network}) on conflict do nothing`.execute(trx);
  await sql`select from anchor_networks where network = ${network} for update`.execute(trx);
  return loadFollowed(trx, network);
}

export async function listKept(db: Db, network: string, fromBlock: number): Promise<AnchorEvent[]> {
  const { rows } = await sql<AnchorEvent>`
    select ${COLUMNS} from anchor_events where network = ${network} and block_number >= ${fromBlock}
    order by block_number, log_index`.execute(db);
  return rows;
}

export interface NewEvent extends KeptEvent {
  readonly network: string;
  readonly blockTime: number;
  readonly emitter: string;
  readonly content: string;
  readonly cid: string | null;
  /** Why it is not read; undefined where it is. */
  readonly refusal: VerdictReason | undefined;
}

export async function insertEvent(db: Db, event: NewEvent, nowMs: number): Promise<void> {
  const { refusal } = event;
  await sql`
    insert into anchor_events
      (network, block_number, log_index, tx_hash, block_time, emitter, content, cid, state, reason, due_ms, seen_ms)
    values (${event.network}, ${event.blockNumber}, ${event.logIndex}, ${event.transactionHash}, ${event.blockTime}, ${event.emitter},
      ${refusal ? '' : event.content}, ${event.cid}, ${refusal ? 'refused' : 'waiting'},
      ${refusal ? storableJson(refusal) : null}, ${nowMs}, ${nowMs})`.execute(db);
}

export async function retimeEvent(
  db: Db,
  { blockTime, ...place }: AnchorPlace & { readonly blockTime: number },
): Promise<void> {
  await sql`update anchor_events set block_time = ${blockTime} where ${isAt(place)}`.execute(db);
}

/** Events that were refused for their emitters, who are believed now, are forgotten: the next look finds them new. */
export async function forgetRefused(
  trx: Transaction<Schema>,
  network: string,
  emitters: ReadonlySet<string>,
): Promise<void> {
  const code: ErrorCode = 'EMITTER_NOT_AUTHORIZED';
  await sql`
    with gone as (
      delete from anchor_events where network = ${network} and state = 'refused' and reason ->> 'code' = ${code}
        and emitter = any(${[...emitters]}::text[]) returning block_number)
    update anchor_networks set settled_block = least(settled_block, first - 1)
    from (select min(block_number) as first from gone) g where network = ${network} and first is not null`.execute(
    trx,
  );
}

export async function deleteEvent(db: Db, place: AnchorPlace): Promise<void> {
  await sql`delete from anchor_events where ${isAt(place)}`.execute(db);
}

/** Events whose archives are to be read, the longest due first: those that cannot be had hold up no others. */
export async function listWaiting(
  db: Db,
  network: string,
  nowMs: number,
  limit: number,
): Promise<AnchorEvent[]> {
  const { rows } = await sql<AnchorEvent>`
    select ${COLUMNS} from anchor_events where network = ${network} and state = 'waiting'
      and (due_ms <= ${nowMs} or due_ms > ${nowMs + DUE_WITHIN_MS})
    order by due_ms, block_number, log_index limit ${limit}`.execute(db);
  return rows;
}

/** Whether the event still stands and waits. It stays so until the transaction ends. */
export async function isWaiting(trx: Transaction<Schema>, event: AnchorEvent): Promise<boolean> {
  const { rows } = await sql`
    select from anchor_events where ${isAt(event)} and tx_hash = ${event.transactionHash} and state = 'waiting'
    for update`.execute(trx);
  return rows.length > 0;
}

/** An event that cannot change any more, and that nobody has looked at for the dates of what it confirms. */
export interface UndatedEvent extends KeptEvent {
  readonly network: string;
  readonly blockTime: number;
}

/** The oldest of them. */
export async function findUndated(db: Db, network: string): Promise<UndatedEvent | undefined> {
  const { rows } = await sql<UndatedEvent>`
    select e.network, block_number as "blockNumber", log_index as "logIndex", tx_hash as "transactionHash",
      block_time as "blockTime"
    from anchor_events e join anchor_networks n on n.network = e.network and e.block_number <= n.settled_block
    where e.network = ${network} and e.state = 'processed' and not e.dated and e.block_time is not null
    order by block_number, log_index limit 1`.execute(db);
  return rows[0];
}

/** @param looked at: of its messages; where another has come meanwhile, the event stays undated */
export async function noteDated(
  trx: Transaction<Schema>,
  event: UndatedEvent,
  looked: readonly string[],
): Promise<void> {
  // Whoever keeps a message holds it, and tells of what is dated already (dateAgain).
  await lockWrites(trx);
  if (await isAnyNotedAfter(trx, event, event.blockTime, looked)) return;
  await sql`
    update anchor_events set dated = true where ${isAt(event)} and tx_hash = ${event.transactionHash}`.execute(
    trx,
  );
}

export async function settleEvent(
  db: Db,
  event: AnchorEvent,
  outcome: { readonly messages: number } | { readonly refusal: VerdictReason },
): Promise<void> {
  const [state, reason, messages] =
    'refusal' in outcome
      ? ['refused', storableJson(outcome.refusal), 0]
      : ['processed', null, outcome.messages];
  await sql`
    update anchor_events set state = ${state}, reason = ${reason}, messages = ${messages}
    where ${isAt(event)} and tx_hash = ${event.transactionHash}`.execute(db);
}

/** Why an event is tried again. Where its archive was read, how many of the messages could not be taken yet. */
type Postponed = VerdictReason & { readonly later?: number };

export async function postponeEvent(
  db: Db,
  event: AnchorEvent,
  dueMs: number,
  reason: Postponed,
): Promise<void> {
  await sql`
    update anchor_events set attempts = attempts + 1, due_ms = ${dueMs}, reason = ${storableJson(reason)}
    where ${isAt(event)} and tx_hash = ${event.transactionHash}`.execute(db);
}

/** How many events wait, and how many were read or refused and why. */
export async function countEvents(db: Db): Promise<{ state: string; code: string; total: number }[]> {
  const { rows } = await sql<{ state: string; code: string; total: number }>`
    select state, case when state = 'refused' then coalesce(reason ->> 'code', '') else '' end as code,
      count(*)::bigint as total
    from anchor_events group by 1, 2`.execute(db);
  return rows;
}
