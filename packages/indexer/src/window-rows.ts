import type pg from 'pg';
import { Claims } from './chain/claims.ts';
import type { Header } from './chain/shape.ts';
import { checkEmptyBlock, checkLogs, type FullBlock, fetchFullBlocks, fetchLogsOf } from './chain/source.ts';
import { blockRows, EMPTY_BATCH, joinBatches, type RowBatch, transactionRows } from './decode/rows.ts';
import { RpcError } from './rpc/failures.ts';
import type { Endpoint, RpcPool } from './rpc/pool.ts';
import { listContractEvents } from './store/declared.ts';
import { claimsOf, type Scan } from './store/scans.ts';

export interface WindowReader {
  readonly pool: pg.Pool;
  readonly rpc: RpcPool;
  readonly blooms: boolean;
}

/**
 * Events of blocks that are named by their hashes. Logs are asked for only where a block's bloom says that there may be
 * some. Throws RpcError.
 */
export async function readWindowEvents(
  { pool, rpc, blooms }: WindowReader,
  endpoint: Endpoint,
  headers: readonly Header[],
  scans: readonly Scan[],
): Promise<RowBatch> {
  const wanted = scans.filter(({ kind }) => kind === 'events');
  if (wanted.length === 0) return EMPTY_BATCH;
  const events = await listContractEvents(
    pool,
    wanted.map(({ contractId }) => contractId),
  );
  const claims = new Claims(claimsOf(wanted, events));
  const candidates = headers.filter(({ bloom, number }) => !blooms || claims.mayBeIn(bloom, number));
  const logs = await fetchLogsOf(endpoint, candidates, claims);
  for (const [index, block] of candidates.entries())
    if (blooms && logs[index]!.length === 0) await checkEmptyBlock(rpc, endpoint, block, claims);
  const hasLogs = (_: unknown, index: number) => logs[index]!.length > 0;
  await checkLogs(rpc, endpoint, {
    blocks: candidates.filter(hasLogs),
    logs: logs.filter(hasLogs),
    claims,
  });
  // Each block keeps spans of its own, so that a reorganisation can take them back.
  return joinBatches(candidates.map((block, index) => blockRows(block, logs[index]!, claims)));
}

/** Transactions of blocks that were read in full. */
export function windowTransactions(blocks: readonly FullBlock[], scans: readonly Scan[]): RowBatch {
  const wanted = scans.filter(({ kind }) => kind === 'transactions');
  const fromBlocks = new Map(wanted.map(({ address, fromBlock }) => [address, fromBlock]));
  return joinBatches(
    blocks.map(({ header, transactions }) => transactionRows([{ ...header, transactions }], fromBlocks)),
  );
}

/** The same, of blocks that are named by their hashes. Throws RpcError. */
export async function readWindowTransactions(
  endpoint: Endpoint,
  headers: readonly Header[],
  scans: readonly Scan[],
): Promise<RowBatch> {
  const full = await fetchFullBlocks(
    endpoint,
    headers.map(({ number }) => number),
  );
  if (full.some(({ header }, index) => header.hash !== headers[index]!.hash))
    throw new RpcError({ kind: 'stale' });
  return windowTransactions(full, scans);
}
