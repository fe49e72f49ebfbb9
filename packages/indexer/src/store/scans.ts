import type pg from 'pg';
import type { Claim, ClaimedEvent } from '../chain/claims.ts';
import type { RowKind } from './partitions.ts';

/** What is read from the chain for one contract. */
export interface Scan {
  readonly id: number;
  readonly contractId: number;
  readonly address: string;
  readonly kind: RowKind;
  readonly topics: readonly string[];
  readonly fromBlock: number;
  /** Everything before it is read; without meaning for a live one. */
  readonly nextBlock: number;
  /** Hash of the block before it as it was read; null where that is not known. */
  readonly priorHash: string | null;
  readonly toBlock: number | null;
  readonly live: boolean;
}

type Queryable = pg.Pool | pg.PoolClient;

/** Whether it has more to read and does not follow the tip. */
export const isWaiting = ({ live, nextBlock, toBlock }: Reach): boolean =>
  !live && (toBlock === null || nextBlock <= toBlock);

/** @param address of one contract, lower case; all of the network where left out */
export async function listScans(db: Queryable, networkId: number, address?: string): Promise<Scan[]> {
  const { rows } = await db.query<Scan>(
    `select s.id, contract_id as "contractId", address, kind, topics, from_block as "fromBlock",
       next_block as "nextBlock", prior_hash as "priorHash", to_block as "toBlock", live
     from indexer_scans s join indexer_contracts c on c.id = s.contract_id
     where s.network_id = $1 and ($2::text is null or address = $2) order by s.id`,
    [networkId, address ?? null],
  );
  return rows;
}

/** How far a scan is. */
export type Reach = Pick<Scan, 'nextBlock' | 'toBlock' | 'live'>;

/**
 * What scans have yet to do, as one that follows the tip and the one furthest behind it: whoever asks how far a network is need not
 * read all that strangers have asked for.
 */
export async function listReaches(db: Queryable, networkId: number): Promise<Reach[]> {
  const { rows } = await db.query<Reach>(
    `select live, min(next_block) as "nextBlock", null as "toBlock" from indexer_scans
     where network_id = $1 and (live or to_block is null or next_block <= to_block) group by live`,
    [networkId],
  );
  return rows;
}

/** The owner of what the node's own settings ask for. */
export const SETTINGS_OWNER = 'settings';

/** The claims of some scans, one for each contract. */
export function claimsOf(
  scans: readonly Scan[],
  events: ReadonlyMap<number, readonly ClaimedEvent[]>,
): Claim[] {
  return [...Map.groupBy(scans, ({ contractId }) => contractId)].map(([contractId, own]) => ({
    contractId,
    address: own[0]!.address,
    topics: [...new Set(own.flatMap(({ topics }) => topics))],
    events: events.get(contractId) ?? [],
    fromBlock: Math.min(...own.map(({ fromBlock }) => fromBlock)),
  }));
}

/** Scans that a backfill reads together: all that stand at one block, up to where the next one joins. */
export interface Pass {
  readonly kind: RowKind;
  readonly scans: readonly Scan[];
  readonly from: number;
  readonly to: number;
  /** The lowest block that a scan beside these has yet to read; Infinity where none waits. */
  readonly othersFrom: number;
}

/** Addresses in one request; beyond it a pass takes the rest in the next turn. */
const PASS_SCANS_MAX = 200;

/**
 * Who is next. The furthest behind is read together with all whom it comes to; but it may be weeks behind, and whoever followed
 * the tip until the node was away for a while is not to wait so long.
 */
type PassOrder = 'furthest' | 'nearest';

/**
 * The pass to do next. Pure.
 *
 * @param floor the last block that nothing can undo: a backfill stays at or below it
 */
export function decidePass(scans: readonly Scan[], floor: number, order: PassOrder): Pass | undefined {
  const waiting = scans
    .filter((one) => !one.live && one.nextBlock <= Math.min(floor, one.toBlock ?? floor))
    .toSorted((a, b) => a.nextBlock - b.nextBlock || a.id - b.id);
  const { nextBlock } = waiting.at(order === 'furthest' ? 0 : -1) ?? {};
  const first = waiting.find((one) => one.nextBlock === nextBlock);
  if (!first) return undefined;
  const kin = waiting.filter((one) => one.kind === first.kind);
  const group = kin
    .filter((one) => one.nextBlock === first.nextBlock && oneRequest(one, first))
    .slice(0, PASS_SCANS_MAX);
  const others = kin.filter((one) => one.nextBlock > first.nextBlock).map((one) => one.nextBlock - 1);
  const ends = group.map((one) => one.toBlock ?? floor);
  const rest = waiting.filter((one) => !group.includes(one));
  return {
    kind: first.kind,
    scans: group,
    from: first.nextBlock,
    to: Math.min(floor, ...ends, ...others),
    othersFrom: rest[0]?.nextBlock ?? Number.POSITIVE_INFINITY,
  };
}

/** A request has one list of topics for all of its addresses: a scan of every topic goes alone. */
const oneRequest = (a: Scan, b: Scan): boolean => a.topics.includes('*') === b.topics.includes('*');
