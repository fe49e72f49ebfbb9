import type pg from 'pg';
import { ANY_TOPIC, topicsNamed } from '../chain/claims.ts';
import { listContractEvents } from '../store/declared.ts';
import { findNetwork, type NetworkRow } from '../store/networks.ts';
import { isWaiting, listReaches, listScans, type Reach, type Scan } from '../store/scans.ts';

/** How true an answer is. */
export interface Freshness {
  readonly networkId: number;
  readonly chainId: number;
  /** The newest block that any endpoint has shown; null before the first look. */
  readonly head: number | null;
  readonly headTimestamp: number | null;
  /** The last block that is final, of those that were compared with the chain: what is read up to it stays. */
  readonly finalized: number | null;
  /** Up to it everything that is asked for is read; null where nothing is yet. */
  readonly indexed: number | null;
  /** Blocks between the two. */
  readonly lag: number | null;
  readonly undoSeq: number;
  readonly halt: { readonly code: string; readonly message: string } | null;
  /** Whether it is known where the window begins: before it nothing is read. */
  readonly hasBegun: boolean;
  /**
   * When what there is to read last moved: of the tip and what lies behind it, the one that has stood for longer. Where all is read,
   * when an endpoint last showed that.
   */
  readonly progressAt: Date;
  readonly requests: number;
}

/** How much of a contract is read. */
export interface Coverage {
  readonly contractId: number;
  readonly contract: string;
  readonly kind: 'events' | 'transactions';
  readonly fromBlock: number;
  /** null where nothing is read yet. */
  readonly toBlock: number | null;
  /** Follows the head. */
  readonly live: boolean;
}

type Queryable = pg.Pool | pg.PoolClient;

/** The last block that a scan has read, or undefined where it has nothing more to read. */
function reachOf(scan: Reach, tip: number | null): number | undefined {
  if (scan.live) return tip ?? undefined;
  return scan.toBlock !== null && scan.nextBlock > scan.toBlock ? undefined : scan.nextBlock - 1;
}

export async function findFreshness(db: Queryable, networkName: string): Promise<Freshness | undefined> {
  const network = await findNetwork(db, networkName);
  if (!network) return undefined;
  const { head, tipNumber } = network;
  const scans = await listReaches(db, network.id);
  const reaches = scans.flatMap((scan) => reachOf(scan, tipNumber) ?? []);
  const lowest = reaches.length === 0 ? head : Math.min(...reaches);
  const indexed = lowest === null || lowest < 0 ? null : lowest;
  return {
    networkId: network.id,
    chainId: network.chainId,
    head,
    headTimestamp: network.headTimestamp,
    finalized: network.finalized === null ? null : Math.min(network.finalized, network.floor),
    indexed,
    lag: head === null ? null : Math.max(0, head - (indexed ?? -1)),
    undoSeq: network.undoSeq,
    halt: network.haltCode === null ? null : { code: network.haltCode, message: network.haltMessage ?? '' },
    hasBegun: tipNumber !== null,
    progressAt: progressOf(network, scans),
    requests: network.requests,
  };
}

/** A tip that moves must not hide that the backfill stands still, nor the other way round. Pure. */
export function progressOf(
  {
    head,
    tipNumber,
    progressAt,
    backfilledAt,
  }: Pick<NetworkRow, 'head' | 'tipNumber' | 'progressAt' | 'backfilledAt'>,
  scans: readonly Reach[],
): Date {
  const waits = [
    ...(scans.length > 0 && (head === null || head !== tipNumber) ? [progressAt] : []),
    ...(scans.some((one) => isWaiting(one) && one.nextBlock <= (tipNumber ?? -1)) ? [backfilledAt] : []),
  ];
  if (waits.length > 0) return waits.reduce((a, b) => (a < b ? a : b));
  return progressAt > backfilledAt ? progressAt : backfilledAt;
}

export type NetworkState = 'live' | 'catching_up' | 'stalled' | 'halted' | 'not_read';

/**
 * Pure.
 *
 * @param stallMs without progress for so long is a stall, also where all was read: no endpoint says any more that it still is all.
 * Undefined where nobody reads the network
 */
export function stateOf(
  { halt, lag, hasBegun, progressAt }: Pick<Freshness, 'halt' | 'lag' | 'hasBegun' | 'progressAt'>,
  stallMs: number | undefined,
  nowMs: number,
): NetworkState {
  // What it was when it was last read says nothing of now.
  if (stallMs === undefined) return 'not_read';
  if (halt) return 'halted';
  if (nowMs - progressAt.getTime() > stallMs) return 'stalled';
  return lag === 0 && hasBegun ? 'live' : 'catching_up';
}

export async function listNetworkNames(db: Queryable): Promise<string[]> {
  const { rows } = await db.query<{ name: string }>('select name from indexer_networks order by name');
  return rows.map(({ name }) => name);
}

/** What is asked of a contract: others may have it read for other events, or further back. */
interface Asked {
  /** Lower case; all contracts where left out. */
  readonly address?: string | undefined;
  /** First topics of the events; all where left out. */
  readonly topics?: ReadonlySet<string> | undefined;
  /** Blocks before it are not asked for. */
  readonly fromBlock?: number | undefined;
}

/**
 * The first topics by which a contract's events of a name or a signature are read. A signature has one topic: whoever declares
 * an anonymous event with it, which has none, says nothing of the others.
 */
async function findTopics(
  db: Queryable,
  networkId: number,
  address: string,
  eventName: string,
): Promise<ReadonlySet<string>> {
  const { rows } = await db.query<{ id: number }>(
    'select id from indexer_contracts where network_id = $1 and address = $2',
    [networkId, address],
  );
  const [events = []] = (
    await listContractEvents(
      db,
      rows.map(({ id }) => id),
    )
  ).values();
  const topics = topicsNamed(events, eventName);
  const named = new Set([...topics].filter((topic) => topic !== ANY_TOPIC));
  return eventName.includes('(') && named.size > 0 ? named : topics;
}

/** Whether what a scan reads belongs to the answer. Pure. */
function isAsked(
  { kind, topics, toBlock }: Pick<Scan, 'kind' | 'topics' | 'toBlock'>,
  asked: Omit<Asked, 'address'>,
): boolean {
  if (toBlock !== null && toBlock < (asked.fromBlock ?? 0)) return false;
  if (asked.topics === undefined) return true;
  // Transactions say nothing of an event that is named.
  return kind === 'events' && topics.some((topic) => asked.topics?.has(topic));
}

interface AskedByName extends Pick<Asked, 'fromBlock'> {
  readonly address: string;
  readonly eventName?: string | undefined;
}

/** How much is read of a contract, of the events of a name or signature where one is given. */
export async function listCoverageOf(
  db: Queryable,
  networkId: number,
  { address, eventName, fromBlock }: AskedByName,
): Promise<Coverage[]> {
  const topics = eventName === undefined ? undefined : await findTopics(db, networkId, address, eventName);
  return listCoverage(db, networkId, { address, topics, fromBlock });
}

/** The same, of all contracts where none is named. */
export async function listCoverage(db: Queryable, networkId: number, asked: Asked = {}): Promise<Coverage[]> {
  const { rows: networks } = await db.query<{ tip: number | null }>(
    'select tip_number as tip from indexer_networks where id = $1',
    [networkId],
  );
  const byContract = new Map<string, { scans: Scan[]; scan: Scan }>();
  for (const scan of await listScans(db, networkId, asked.address)) {
    if (!isAsked(scan, asked)) continue;
    const key = `${scan.kind} ${scan.contractId}`;
    const known = byContract.get(key);
    if (known) known.scans.push(scan);
    else byContract.set(key, { scans: [scan], scan });
  }
  return [...byContract.values()].map(({ scans, scan }) => {
    const open = scans.flatMap((one) => reachOf(one, networks[0]!.tip) ?? []);
    const fromBlock = Math.min(...scans.map((one) => one.fromBlock));
    const toBlock = Math.min(...open);
    return {
      contractId: scan.contractId,
      contract: scan.address,
      kind: scan.kind,
      fromBlock,
      toBlock: toBlock < fromBlock ? null : toBlock,
      live: scans.every((one) => one.live || one.toBlock !== null),
    };
  });
}
