import type pg from 'pg';
import { findNetwork, type NetworkRow } from '../store/networks.ts';
import { isWaiting, listScans, type Scan } from '../store/scans.ts';

/** How true an answer is. */
export interface Freshness {
  readonly networkId: number;
  readonly chainId: number;
  /** The newest block that any endpoint has shown; null before the first look. */
  readonly head: number | null;
  readonly headTimestamp: number | null;
  readonly finalized: number | null;
  /** Up to it everything that is asked for is read; null where nothing is yet. */
  readonly indexed: number | null;
  /** Blocks between the two. */
  readonly lag: number | null;
  readonly undoSeq: number;
  readonly halt: { readonly code: string; readonly message: string } | null;
  /** When what there is to read last moved: of the tip and what lies behind it, the one that has stood for longer. */
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
function reachOf(scan: Scan, tip: number | null): number | undefined {
  if (scan.live) return tip ?? undefined;
  return scan.toBlock !== null && scan.nextBlock > scan.toBlock ? undefined : scan.nextBlock - 1;
}

export async function findFreshness(db: Queryable, networkName: string): Promise<Freshness | undefined> {
  const network = await findNetwork(db, networkName);
  if (!network) return undefined;
  const { head, tipNumber } = network;
  const scans = await listScans(db, network.id);
  const reaches = scans.flatMap((scan) => reachOf(scan, tipNumber) ?? []);
  const lowest = reaches.length === 0 ? head : Math.min(...reaches);
  const indexed = lowest === null || lowest < 0 ? null : lowest;
  return {
    networkId: network.id,
    chainId: network.chainId,
    head,
    headTimestamp: network.headTimestamp,
    finalized: network.finalized,
    indexed,
    lag: head === null ? null : Math.max(0, head - (indexed ?? -1)),
    undoSeq: network.undoSeq,
    halt: network.haltCode === null ? null : { code: network.haltCode, message: network.haltMessage ?? '' },
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
  scans: readonly Scan[],
): Date {
  const waits = [
    ...(scans.length > 0 && (head === null || head !== tipNumber) ? [progressAt] : []),
    ...(scans.some((one) => isWaiting(one) && one.nextBlock <= (tipNumber ?? -1)) ? [backfilledAt] : []),
  ];
  if (waits.length > 0) return waits.reduce((a, b) => (a < b ? a : b));
  return progressAt > backfilledAt ? progressAt : backfilledAt;
}

export type NetworkState = 'live' | 'catching_up' | 'stalled' | 'halted';

/** Pure. @param stallMs without progress for so long, while there is something to read, is a stall */
export function stateOf({ halt, lag, progressAt }: Freshness, stallMs: number, nowMs: number): NetworkState {
  if (halt) return 'halted';
  if (lag === 0) return 'live';
  return nowMs - progressAt.getTime() > stallMs ? 'stalled' : 'catching_up';
}

export async function listNetworkNames(db: Queryable): Promise<string[]> {
  const { rows } = await db.query<{ name: string }>('select name from indexer_networks order by name');
  return rows.map(({ name }) => name);
}

/** @param address in lower case; all contracts without one */
export async function listCoverage(db: Queryable, networkId: number, address?: string): Promise<Coverage[]> {
  const { rows: networks } = await db.query<{ tip: number | null }>(
    'select tip_number as tip from indexer_networks where id = $1',
    [networkId],
  );
  const byContract = new Map<string, { scans: Scan[]; scan: Scan }>();
  for (const scan of await listScans(db, networkId)) {
    if (address !== undefined && scan.address !== address) continue;
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
