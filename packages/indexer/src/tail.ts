import type { Logger } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import type pg from 'pg';
import { findAncestor } from './chain/ancestor.ts';
import { lookAtHead, type View } from './chain/look.ts';
import type { Header } from './chain/shape.ts';
import {
  CONTRADICTIONS,
  checkAnchor,
  fetchFullBlocks,
  fetchHead,
  fetchHeaders,
  haveMost,
  judgeBlock,
} from './chain/source.ts';
import { decideFinality, type Finality, isChain } from './chain/window.ts';
import { joinSome } from './join.ts';
import { RpcError } from './rpc/failures.ts';
import type { Endpoint, RpcPool } from './rpc/pool.ts';
import { READ_AGAIN } from './settings.ts';
import { commitDemotion, commitTail, NO_ROWS, type TailStep, WINDOW_BELOW_FLOOR } from './store/commit.ts';
import { Moved } from './store/moved.ts';
import { haltNetwork, listWindow, loadNetwork, type NetworkRow, noteHead } from './store/networks.ts';
import type { Partitions } from './store/partitions.ts';
import { isWaiting, listScans, type Scan } from './store/scans.ts';
import { readWindowEvents, windowTransactions } from './window-rows.ts';

/** Blocks that one step adds. */
const STEP_BLOCKS = 128;
/** A tip that is farther below the floor than this is left to the backfill. */
const CATCH_UP_BLOCKS = 256;
/** The last final block is asked for at every so manieth look: it moves once in minutes. */
const LOOKS_PER_FINALIZED = 8;
/** So often the chain has to be seen shorter than it was before that is believed. */
const SHORTER_TIMES = 3;
/** Endpoints that one step tries, in turn: the next step looks anew, which is better than to insist. */
const TRIES_PER_ENDPOINT = 2;

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
  #contradictions = 0;
  #countedCalls = 0;
  #looks = 0;

  constructor(options: TailOptions) {
    this.#options = options;
  }

  /**
   * Throws Moved, OffChain, UPSTREAM_UNAVAILABLE, or what the database throws: the next step starts from what is stored.
   */
  async step(): Promise<StepOutcome> {
    const { pool, networkId, rpc } = this.#options;
    const network = await loadNetwork(pool, networkId);
    const view = await this.#look();
    if (network.haltCode !== null) return 'halted';
    const finality = this.#finalityOf(network, view);
    if (!isTipped(network)) return this.#start(network, finality);
    const scans = await listScans(pool, networkId);
    if (scans.length === 0) return 'idle';
    const attempts = rpc.endpoints.length * TRIES_PER_ENDPOINT;
    const outcome = await rpc.run((endpoint) => this.#advance(endpoint, network, view, finality, scans), {
      head: Math.min(view.head.number, network.tipNumber),
      attempts,
    });
    const isNear = (one: Scan) => isWaiting(one) && one.nextBlock >= network.floor - WINDOW_BELOW_FLOOR;
    if (outcome === 'halted' || !scans.some(isNear)) return outcome;
    // From what is stored now: the step may have moved the tip.
    return (await joinSome({ ...this.#options, attempts })) ? 'behind' : outcome;
  }

  async #look(): Promise<View> {
    const { pool, networkId, rpc, finalityTag } = this.#options;
    const view = await lookAtHead(rpc, finalityTag && this.#looks++ % LOOKS_PER_FINALIZED === 0);
    const { calls } = rpc;
    await noteHead(pool, networkId, { head: view.head, requests: calls - this.#countedCalls });
    this.#countedCalls = calls;
    return view;
  }

  /** Undefined while it has to stay where it is. */
  #finalityOf(network: NetworkRow, { agreed: head, finalized: final }: View): Finality | undefined {
    const { finalityTag, finalityDepth: depth, reorgDepthMax: depthMax } = this.#options;
    if (head === undefined) return undefined;
    return decideFinality(network.floor, { head, finalized: finalityTag ? final : null, depth, depthMax });
  }

  /**
   * The first look at a chain: the window begins at the floor. What it begins with is never rewritten, so that those who are silent
   * now could not correct it: more than half of all endpoints have to have it. Throws UPSTREAM_UNAVAILABLE where too few do.
   */
  async #start(network: NetworkRow, finality: Finality | undefined): Promise<StepOutcome> {
    const { pool, rpc } = this.#options;
    if (finality === undefined)
      throw new AppError(
        'UPSTREAM_UNAVAILABLE',
        `one of ${rpc.endpoints.length} RPC endpoints alone has shown where the chain ends`,
      );
    const { floor } = finality;
    const start = await rpc.run((endpoint) => this.#fetchAnchor(endpoint, floor), { head: floor });
    if (!(await haveMost(rpc, [start])))
      throw new AppError(
        'UPSTREAM_UNAVAILABLE',
        `reading begins at block ${floor} once more than half of the ${rpc.endpoints.length} RPC endpoints have the same one`,
      );
    const step = { fromHash: null, ancestor: floor - 1, blocks: [start], ...finality, rows: NO_ROWS };
    await commitTail(pool, network.id, step);
    return 'behind';
  }

  /** A block that is final from now on, as most endpoints have it. Throws RpcError `lie` where this one has another. */
  async #fetchAnchor(endpoint: Endpoint, number: number): Promise<Header> {
    const [header] = await fetchHeaders(endpoint, [number]);
    await checkAnchor(this.#options.rpc, endpoint, header!);
    return header!;
  }

  async #advance(
    endpoint: Endpoint,
    network: TippedNetwork,
    view: View,
    finality: Finality | undefined,
    scans: readonly Scan[],
  ): Promise<StepOutcome> {
    // One whose looks have all failed so far has said nothing yet.
    if (endpoint.head < 0) await fetchHead(endpoint, false);
    const head = Math.min(view.head.number, endpoint.head);
    const { tipNumber: tip } = network;
    const ancestor = await this.#findAncestor(endpoint, network, Math.min(head, tip));
    if (ancestor === undefined) return this.#contradict(endpoint, network, head);
    this.#contradictions = 0;
    if (head < tip && ancestor === head) {
      // Nothing contradicts the tip: others may be behind. Only when all agree for a while the chain has shrunk.
      if (++this.#shorter < SHORTER_TIMES) return 'idle';
    }
    this.#shorter = 0;
    if (ancestor === tip && head === tip) return this.#rest(endpoint, network, finality);
    if (ancestor < tip) await this.#checkDispute(endpoint, ancestor, network);
    if (ancestor === tip && finality !== undefined && finality.floor - tip > CATCH_UP_BLOCKS)
      return this.#demote(endpoint, network, finality.floor);
    const to = Math.min(head, Math.max(ancestor + STEP_BLOCKS, tip));
    const final = this.#finalityAt(endpoint, network, to, finality);
    await this.#extend(endpoint, network, { ancestor, to, ...final }, scans);
    if (ancestor < tip)
      this.#options.log.info(
        { network: network.name, ancestor, depth: tip - ancestor },
        'a reorg was undone',
      );
    return to < head ? 'behind' : 'advanced';
  }

  /**
   * What a step makes final that has compared what is stored with an endpoint's chain: no more than this endpoint calls final as well.
   * One that is stuck on a fork has blocks in the place of those that the others call final. The floor never passes the tip; blocks
   * that were followed that far are never undone, whoever is behind.
   */
  #finalityAt(
    { head, finalized }: Endpoint,
    network: TippedNetwork,
    tip: number,
    finality: Finality | undefined,
  ): TailFinality {
    const { finalityTag, finalityDepth, reorgDepthMax } = this.#options;
    if (finality === undefined) return { floor: network.floor, finalized: null };
    const own = finalityTag && finalized >= 0 ? finalized : head - finalityDepth;
    const agreed = Math.min(own, finality.floor);
    const floor = Math.min(tip, Math.max(network.floor, agreed, tip - reorgDepthMax));
    return { floor, finalized: Math.max(0, Math.min(floor, own, finality.finalized)) };
  }

  /** At the tip: nothing is new but perhaps what is final. */
  async #rest(
    endpoint: Endpoint,
    network: TippedNetwork,
    finality: Finality | undefined,
  ): Promise<StepOutcome> {
    const { tipNumber, tipHash } = network;
    const raised = this.#finalityAt(endpoint, network, tipNumber, finality);
    if (raised.floor > network.floor || (raised.finalized ?? -1) > (network.finalized ?? -1))
      await commitTail(this.#options.pool, network.id, {
        fromHash: tipHash,
        ancestor: tipNumber,
        blocks: [],
        ...raised,
        rows: NO_ROWS,
      });
    return 'idle';
  }

  /** The highest stored block that the endpoint has too; undefined where that is below the floor. */
  async #findAncestor(endpoint: Endpoint, network: TippedNetwork, from: number): Promise<number | undefined> {
    if (from === network.tipNumber) {
      const [header] = await fetchHeaders(endpoint, [from]);
      if (header!.hash === network.tipHash) return from;
    }
    return findAncestor(endpoint, await listWindow(this.#options.pool, network.id, network.floor, from));
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
   * Blocks of the floor and below are other ones: nothing is rewritten, the network halts. A head below the floor alone is
   * none of that: who is behind contradicts nobody, nor do too few. Throws RpcError `lie` where most have
   * what is stored.
   */
  async #contradict(endpoint: Endpoint, network: TippedNetwork, head: number): Promise<StepOutcome> {
    const { pool, log, rpc } = this.#options;
    const [genesis] = await fetchHeaders(endpoint, [0]);
    const restarted = network.genesisHash !== null && genesis!.hash !== network.genesisHash;
    if (!restarted && head < network.floor) return 'idle';
    const [stored] = restarted
      ? [{ number: 0, hash: network.genesisHash }]
      : await listWindow(pool, network.id, network.floor, network.floor);
    const verdict = stored && (await judgeBlock(rpc, stored.number, stored.hash));
    if (verdict === 'stands')
      throw new RpcError({ kind: 'lie', reason: 'final blocks are other ones at other endpoints' });
    if (verdict !== 'gone' || ++this.#contradictions < CONTRADICTIONS) return 'idle';
    const code = restarted ? 'CHAIN_RESTARTED' : 'REORG_BELOW_FINALITY';
    const message = restarted
      ? `the chain begins with another block than it did: ${READ_AGAIN}`
      : `the chain has other blocks at or below ${network.floor}, which were final: ${READ_AGAIN}`;
    await haltNetwork(pool, network.id, code, message);
    log.error({ network: network.name, code }, message);
    return 'halted';
  }

  async #demote(endpoint: Endpoint, network: TippedNetwork, floor: number): Promise<StepOutcome> {
    const start = await this.#fetchAnchor(endpoint, floor);
    await commitDemotion(this.#options.pool, network.id, network.tipHash, start);
    return 'behind';
  }

  async #extend(
    endpoint: Endpoint,
    network: TippedNetwork,
    { ancestor, to, floor, finalized }: TailFinality & { readonly ancestor: number; readonly to: number },
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
    const [parent] = await listWindow(pool, network.id, ancestor, ancestor);
    // Another process moved it.
    if (!parent) throw new Moved();
    if (!isChain([parent, ...headers]))
      // Reorganised between two answers, or several nodes behind one address: not worth the word lie.
      throw new RpcError({ kind: 'stale' });
    // It said before that it has another tip: nothing was taken back.
    if (headers.some(({ hash }) => hash === network.tipHash)) throw new RpcError({ kind: 'stale' });
    const events = await readWindowEvents(this.#options, endpoint, headers, live);
    const transactions = windowTransactions(full, live);
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
      finalized,
      rows: { events, transactions },
    });
  }
}

type TailFinality = Pick<TailStep, 'floor' | 'finalized'>;

type TippedNetwork = NetworkRow & { readonly tipNumber: number; readonly tipHash: string };

const isTipped = (network: NetworkRow): network is TippedNetwork => network.tipNumber !== null;
