import type { Header } from './chain/shape.ts';
import type { Endpoint } from './rpc/pool.ts';
import { commitJoin, OffChain } from './store/commit.ts';
import { listWindow, loadNetwork } from './store/networks.ts';
import type { Partitions } from './store/partitions.ts';
import { isWaiting, listScans, type Scan } from './store/scans.ts';
import { readWindowEvents, readWindowTransactions, type WindowReader } from './window-rows.ts';

/** Blocks that one step takes: each request for them may fail. */
const JOIN_BLOCKS = 128;

export interface Join {
  readonly scans: readonly Scan[];
  readonly blocks: readonly Header[];
}

/**
 * What to read next of the window for scans that have come to it and do not follow the tip yet: those that stand at the
 * lowest block, and the blocks up to where another one stands. Pure.
 *
 * @param window lowest block first; it ends with the tip
 */
export function decideJoin(scans: readonly Scan[], window: readonly Header[]): Join | undefined {
  const [first, tip] = [window[0]?.number, window.at(-1)?.number];
  if (first === undefined || tip === undefined) return undefined;
  const waiting = scans.filter(
    (one) =>
      isWaiting(one) && one.nextBlock >= first && one.nextBlock <= (one.toBlock === null ? tip + 1 : tip),
  );
  const lowest = waiting.toSorted((a, b) => a.nextBlock - b.nextBlock || a.id - b.id)[0];
  if (!lowest) return undefined;
  const { kind, nextBlock } = lowest;
  const kin = waiting.filter((one) => one.kind === kind);
  const joining = kin.filter((one) => one.nextBlock === nextBlock);
  const ends = [
    nextBlock + JOIN_BLOCKS - 1,
    ...kin.filter((one) => one.nextBlock > nextBlock).map((one) => one.nextBlock - 1),
    ...joining.flatMap(({ toBlock }) => toBlock ?? []),
  ];
  const to = Math.min(tip, ...ends);
  return { scans: joining, blocks: window.filter(({ number }) => number >= nextBlock && number <= to) };
}

/**
 * Brings scans that the backfill has brought to the window nearer to the tip. Gives whether there was something to do.
 * Throws Moved, UPSTREAM_UNAVAILABLE, OffChain where what a scan has read does not lead to the window.
 */
export async function joinSome(
  options: WindowReader & {
    readonly networkId: number;
    readonly partitions: Partitions;
    readonly attempts: number;
  },
): Promise<boolean> {
  const { pool, rpc, networkId, partitions, attempts } = options;
  const { tipNumber, tipHash } = await loadNetwork(pool, networkId);
  if (tipNumber === null || tipHash === null) return false;
  const scans = await listScans(pool, networkId);
  const lowest = Math.min(...scans.filter(isWaiting).map((one) => one.nextBlock));
  const window = await listWindow(pool, networkId, Math.min(lowest, tipNumber));
  const join = decideJoin(scans, window);
  if (!join || window.at(-1)?.hash !== tipHash) return false;
  const { blocks } = join;
  const { kind, nextBlock } = join.scans[0]!;
  const parent = blocks[0]?.parentHash ?? tipHash;
  if (join.scans.some(({ priorHash }) => priorHash !== null && priorHash !== parent))
    throw new OffChain(nextBlock - 1);
  const read = (endpoint: Endpoint) =>
    kind === 'events'
      ? readWindowEvents(options, endpoint, blocks, join.scans)
      : readWindowTransactions(endpoint, blocks, join.scans);
  const batch = await rpc.run(read, { head: blocks.at(-1)?.number ?? nextBlock - 1, attempts });
  if (batch.rows > 0) await partitions.ensure(kind, nextBlock, blocks.at(-1)!.number);
  await commitJoin(pool, networkId, { tipHash, kind, scans: join.scans, blocks, batch });
  return true;
}
