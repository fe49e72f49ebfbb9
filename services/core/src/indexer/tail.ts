import type { Logger } from '@skerry/kit';
import type pg from 'pg';
import { Claims } from './chain/claims.ts';
import type { Header, Log } from './chain/shape.ts';
import {
  checkEmptyBlock,
  type FullBlock,
  fetchFullBlocks,
  fetchHead,
  fetchHeaders,
  fetchLogsOf,
  type Head,
  hashAt,
} from './chain/source.ts';
import { decideFloor, findAncestor, isChain } from './chain/window.ts';
import { eventRows, type RowBatch, transactionRows } from './decode/rows.ts';
import { RpcError } from './rpc/failures.ts';
import type { Endpoint, RpcPool } from './rpc/pool.ts';
import { commitDemotion, commitJoin, commitTail, NO_ROWS } from './store/commit.ts';
import { haltNetwork, listWindow, loadNetwork, type NetworkRow, noteHead } from './store/networks.ts';
import type { Partitions } from './store/partitions.ts';
import { claimsOf, listContractEvents, listScans, type Scan } from './store/scans.ts';

/** Blocks that one step adds. */
const STEP_BLOCKS = 128;
/** A tip that is farther below the floor than this is left to the backfill. */
const CATCH_UP_BLOCKS = 256;
/** Headers in one look for the common ancestor. */
const ANCESTOR_BLOCKS = 32;
/** The last final block is asked for at every so manieth look: it moves once in minutes. */
const LOOKS_PER_FINALIZED = 8;
/** So often the chain has to be seen shorter than it was before that is believed. */
const SHORTER_TIMES = 3;

export interface TailOptions {
  readonly pool: pg.Pool;
  readonly rpc: RpcPool;
  readonly partitions: Partitions;
  readonly networkId: number;
  readonly blooms: boolean;
  readonly finalityTag: boolean;
  readonly finalityDepth: number;
  readonly reorgDepthMax: number;
  readonly log: Logger;
}

/** What a step did: `behind` where there is more to do at once. */
export type StepOutcome = 'idle' | 'advanced' | 'behind' | 'halted';

/** Follows the head of a chain: one step at a time, each one transaction. */
export class Tail {
  readonly #options: TailOptions;
  #shorter = 0;
  #countedCalls = 0;
  #looks = 0;

  constructor(options: TailOptions) {
    this.#options = options;
  }

  /** Throws Moved, UPSTREAM_UNAVAILABLE, or what the database throws: the next step starts from what is stored. */
  async step(): Promise<StepOutcome> {
    const { pool, networkId, rpc } = this.#options;
    const network = await loadNetwork(pool, networkId);
    const view = await this.#look(network);
    if (network.haltCode !== null) return 'halted';
    if (network.tipNumber === null) return this.#start(network, view);
    const floor = this.#floorOf(network, view);
    const scans = await listScans(pool, networkId);
    if (scans.length === 0) return 'idle';
    return rpc.run((endpoint) => this.#advance(endpoint, network as TippedNetwork, view, floor, scans), {
      head: Math.min(view.head.number, network.tipNumber),
    });
  }

  /** Asks everybody where the chain ends; the farthest view counts. */
  async #look(network: NetworkRow): Promise<Head> {
    const { pool, networkId, rpc } = this.#options;
    const finalityTag = this.#options.finalityTag && this.#looks++ % LOOKS_PER_FINALIZED === 0;
    const looks = await Promise.allSettled(
      rpc.endpoints
        .filter((one) => one.learned.restUntilMs <= Date.now())
        .map(async (endpoint) => {
          try {
            return await fetchHead(endpoint, finalityTag);
          } catch (error) {
            if (error instanceof RpcError) endpoint.note(error.failure, 0);
            throw error;
          }
        }),
    );
    const views = looks.flatMap((look) => (look.status === 'fulfilled' ? [look.value] : []));
    const best =
      views.toSorted((a, b) => b.head.number - a.head.number)[0] ??
      (await rpc.run((endpoint) => fetchHead(endpoint, finalityTag)));
    const view = {
      head: best.head,
      finalized: best.finalized ?? (this.#options.finalityTag ? network.finalized : null),
    };
    const { calls } = rpc;
    await noteHead(pool, networkId, {
      head: view.head.number,
      headTimestamp: view.head.timestamp,
      finalized: view.finalized ?? Math.max(0, view.head.number - this.#options.finalityDepth),
      requests: calls - this.#countedCalls,
    });
    this.#countedCalls = calls;
    return view;
  }

  #floorOf(network: NetworkRow, { head, finalized }: Head): number {
    const { finalityDepth: depth, reorgDepthMax: depthMax } = this.#options;
    return Math.max(0, decideFloor(network.floor, { head: head.number, finalized, depth, depthMax }));
  }

  /** The first look at a chain: the window begins at the floor. */
  async #start(network: NetworkRow, view: Head): Promise<StepOutcome> {
    const { pool, rpc } = this.#options;
    const floor = this.#floorOf(network, view);
    const start = await rpc.run(async (endpoint) => (await fetchHeaders(endpoint, [floor]))[0]!, {
      head: floor,
    });
    const step = { fromHash: null, ancestor: floor - 1, blocks: [start], floor, rows: NO_ROWS };
    await commitTail(pool, network.id, step);
    return 'behind';
  }

  async #advance(
    endpoint: Endpoint,
    network: TippedNetwork,
    view: Head,
    floor: number,
    scans: readonly Scan[],
  ): Promise<StepOutcome> {
    // One whose looks have all failed so far has said nothing yet.
    if (endpoint.head < 0) await fetchHead(endpoint, false);
    const head = Math.min(view.head.number, endpoint.head);
    const { tipNumber: tip } = network;
    const ancestor = await this.#findAncestor(endpoint, network, Math.min(head, tip));
    if (ancestor === undefined) return this.#halt(endpoint, network, head);
    if (head <= tip && ancestor === head && head < tip) {
      // Nothing contradicts the tip: others may be behind. Only when all agree for a while the chain has shrunk.
      if (++this.#shorter < SHORTER_TIMES) return 'idle';
    } else if (ancestor === tip && head === tip) {
      this.#shorter = 0;
      if (floor > network.floor) {
        const raised = { fromHash: network.tipHash, ancestor: tip, blocks: [], floor: Math.min(floor, tip) };
        await commitTail(this.#options.pool, network.id, { ...raised, rows: NO_ROWS });
      }
      return this.#join(endpoint, network, scans);
    }
    this.#shorter = 0;
    if (ancestor < tip) await this.#checkDispute(endpoint, ancestor, network);
    if (ancestor === tip && floor - tip > CATCH_UP_BLOCKS) return this.#demote(endpoint, network, floor);
    const to = Math.min(head, Math.max(ancestor + STEP_BLOCKS, tip));
    await this.#extend(endpoint, network, { ancestor, to, floor: Math.min(floor, to) }, scans);
    if (ancestor < tip)
      this.#options.log.info(
        { network: network.name, ancestor, depth: tip - ancestor },
        'a reorganisation was undone',
      );
    return to < head ? 'behind' : 'advanced';
  }

  /** The highest stored block that the endpoint has too; undefined where that is below the floor. */
  async #findAncestor(endpoint: Endpoint, network: TippedNetwork, from: number): Promise<number | undefined> {
    if (from === network.tipNumber) {
      const [header] = await fetchHeaders(endpoint, [from]);
      if (header!.hash === network.tipHash) return from;
    }
    const window = (await listWindow(this.#options.pool, network.id)).filter(
      ({ number }) => number <= from && number >= network.floor,
    );
    for (let end = window.length; end > 0; end -= ANCESTOR_BLOCKS) {
      const part = window.slice(Math.max(0, end - ANCESTOR_BLOCKS), end);
      const seen = await fetchHeaders(
        endpoint,
        part.map(({ number }) => number),
      );
      if (!isChain(seen)) throw new RpcError({ kind: 'lie', reason: 'blocks do not follow each other' });
      const ancestor = findAncestor(part, seen);
      if (ancestor !== undefined) return ancestor;
    }
    return undefined;
  }

  /** One endpoint alone cannot take blocks back that another one, as far as it, still has. Throws RpcError `lie`. */
  async #checkDispute(endpoint: Endpoint, ancestor: number, network: TippedNetwork): Promise<void> {
    const other = this.#options.rpc.findOther(endpoint, network.tipNumber);
    if (!other) return;
    const [mine, theirs] = await Promise.all(
      [endpoint, other].map((one) => fetchHead(one, false).catch(() => undefined)),
    );
    if (!mine || !theirs || theirs.head.number < mine.head.number) return;
    const [header] = await fetchHeaders(other, [network.tipNumber]);
    if (header!.hash === network.tipHash)
      throw new RpcError({
        kind: 'lie',
        reason: `blocks after ${ancestor} are other ones at other endpoints`,
      });
  }

  /**
   * Blocks of the floor and below are other ones: nothing is rewritten, a person has to look. A head below the floor
   * alone is none of that: who is behind contradicts nobody.
   */
  async #halt(endpoint: Endpoint, network: TippedNetwork, head: number): Promise<StepOutcome> {
    const { pool, log, rpc } = this.#options;
    const [genesis] = await fetchHeaders(endpoint, [0]);
    const restarted = network.genesisHash !== null && genesis!.hash !== network.genesisHash;
    if (!restarted && head < network.floor) return 'idle';
    const other = rpc.findOther(endpoint, network.floor);
    if (other && (await hashAt(other, network.tipNumber)) === network.tipHash)
      throw new RpcError({ kind: 'lie', reason: 'final blocks are other ones at other endpoints' });
    const code = restarted ? 'CHAIN_RESTARTED' : 'REORG_BELOW_FINALITY';
    const message = restarted
      ? 'the chain begins with another block than it did: it was started anew'
      : `the chain has other blocks at or below ${network.floor}, which were final`;
    await haltNetwork(pool, network.id, code, message);
    log.error({ network: network.name, code }, message);
    return 'halted';
  }

  async #demote(endpoint: Endpoint, network: TippedNetwork, floor: number): Promise<StepOutcome> {
    const [start] = await fetchHeaders(endpoint, [floor]);
    await commitDemotion(this.#options.pool, network.id, network.tipHash, start!);
    return 'behind';
  }

  async #extend(
    endpoint: Endpoint,
    network: TippedNetwork,
    { ancestor, to, floor }: { ancestor: number; to: number; floor: number },
    scans: readonly Scan[],
  ): Promise<void> {
    const { pool, partitions } = this.#options;
    const live = scans.filter((one) => one.live);
    const numbers = Array.from({ length: to - ancestor }, (_, index) => ancestor + 1 + index);
    const withTransactions = live.some(({ kind }) => kind === 'transactions');
    const full = withTransactions ? await fetchFullBlocks(endpoint, numbers) : [];
    const headers = withTransactions
      ? full.map(({ header }) => header)
      : await fetchHeaders(endpoint, numbers);
    const parent = await this.#headerOf(network, ancestor);
    if (!isChain([parent, ...headers]))
      throw new RpcError({ kind: 'lie', reason: `blocks after ${ancestor} do not follow it` });
    const events = await this.#readEvents(endpoint, headers, live);
    const transactions = joinPerBlock(full.map((block) => transactionsOf([block], live)));
    for (const [kind, batch] of [
      ['events', events],
      ['transactions', transactions],
    ] as const)
      if (batch.rows > 0) await partitions.ensure(kind, ancestor + 1, to);
    await commitTail(pool, network.id, {
      fromHash: network.tipHash,
      ancestor,
      blocks: headers,
      floor,
      rows: { events, transactions },
    });
  }

  async #headerOf(network: TippedNetwork, number: number): Promise<Header> {
    const window = await listWindow(this.#options.pool, network.id);
    const header = window.find((one) => one.number === number);
    if (!header) throw new RpcError({ kind: 'stale' });
    return header;
  }

  /** Logs are asked for only where a block's bloom says that there may be some. */
  async #readEvents(
    endpoint: Endpoint,
    headers: readonly Header[],
    scans: readonly Scan[],
  ): Promise<RowBatch> {
    const { pool, rpc, blooms } = this.#options;
    const wanted = scans.filter(({ kind }) => kind === 'events');
    if (wanted.length === 0) return NO_ROWS.events;
    const events = await listContractEvents(
      pool,
      wanted.map(({ contractId }) => contractId),
    );
    const claims = new Claims(claimsOf(wanted, events));
    const candidates = headers.filter(({ bloom, number }) => !blooms || claims.mayBeIn(bloom, number));
    const logs = await fetchLogsOf(endpoint, candidates, claims);
    for (const [index, block] of candidates.entries())
      if (blooms && logs[index]!.length === 0) await checkEmptyBlock(rpc, endpoint, block, claims);
    return joinPerBlock(candidates.map((block, index) => eventsOf(block, logs[index]!, claims)));
  }

  /** Scans that the backfill has brought to the window get what is in it, and are live from then on. */
  async #join(endpoint: Endpoint, network: TippedNetwork, scans: readonly Scan[]): Promise<StepOutcome> {
    const { pool, partitions } = this.#options;
    const window = await listWindow(pool, network.id);
    const first = window[0]?.number ?? network.tipNumber;
    const ready = scans.find((one) => !one.live && one.toBlock === null && one.nextBlock > first);
    if (!ready) return 'idle';
    const { kind, nextBlock } = ready;
    const joining = scans.filter(
      (one) => !one.live && one.toBlock === null && one.kind === kind && one.nextBlock === nextBlock,
    );
    const blocks = window.filter(({ number }) => number >= nextBlock);
    const batch =
      kind === 'events'
        ? await this.#readEvents(endpoint, blocks, joining)
        : await this.#readWindowTransactions(endpoint, blocks, joining);
    if (batch.rows > 0) await partitions.ensure(kind, nextBlock, network.tipNumber);
    await commitJoin(pool, network.id, {
      tipHash: network.tipHash,
      kind,
      scanIds: joining.map(({ id }) => id),
      nextBlock,
      batch,
    });
    return 'behind';
  }

  async #readWindowTransactions(
    endpoint: Endpoint,
    blocks: readonly Header[],
    scans: readonly Scan[],
  ): Promise<RowBatch> {
    const full = await fetchFullBlocks(
      endpoint,
      blocks.map(({ number }) => number),
    );
    if (full.some(({ header }, index) => header.hash !== blocks[index]!.hash))
      throw new RpcError({ kind: 'stale' });
    return joinPerBlock(full.map((block) => transactionsOf([block], scans)));
  }
}

type TippedNetwork = NetworkRow & { readonly tipNumber: number; readonly tipHash: string };

function eventsOf(block: Header, logs: readonly Log[], claims: Claims): RowBatch {
  return eventRows(
    logs.map((log) => ({ ...log, timestamp: block.timestamp })),
    claims,
    () => block.timestamp,
  );
}

function transactionsOf(blocks: readonly FullBlock[], scans: readonly Scan[]): RowBatch {
  const wanted = scans.filter(({ kind }) => kind === 'transactions');
  return transactionRows(
    blocks.map(({ header, transactions }) => ({ ...header, transactions })),
    new Map(wanted.map(({ address, fromBlock }) => [address, fromBlock])),
  );
}

/** Each block keeps spans of its own, so that a reorganisation can take them back. */
function joinPerBlock(batches: readonly RowBatch[]): RowBatch {
  return {
    text: batches.map(({ text }) => text).join(''),
    rows: batches.reduce((sum, { rows }) => sum + rows, 0),
    spans: batches.flatMap(({ spans }) => spans),
  };
}
