import { BOUNDLESS, type DiskReserve } from '@skerry/database';
import { Failures, type Logger, pause } from '@skerry/kit';
import type pg from 'pg';
import { Backfill } from './backfill.ts';
import type { DecodePool } from './decode/pool.ts';
import { type Freshness, findFreshness, stateOf } from './read/status.ts';
import { Recognition } from './recognition.ts';
import { HeadFeed } from './rpc/head-feed.ts';
import { type EndpointReport, RpcPool } from './rpc/pool.ts';
import { type NetworkSettings, POLLS_SAVED, READ_AGAIN, stallMsOf } from './settings.ts';
import { OffChain } from './store/commit.ts';
import { Moved } from './store/moved.ts';
import { ensureNetwork, haltNetwork, loadNetwork } from './store/networks.ts';
import { Partitions } from './store/partitions.ts';
import { decidePass, listScans, SETTINGS_OWNER } from './store/scans.ts';
import { deleteSomeRemoved, joinScans, mergeSpans } from './store/upkeep.ts';
import { type StepOutcome, Tail } from './tail.ts';
import { watchContract } from './watch.ts';

/** How often a backfill that has nothing to do looks whether it has: this process says so at once, another one does not. */
const IDLE_MS = 2_000;
/** The first rest of a backfill that was interrupted. */
const BACKFILL_REST_MS = 500;
const UPKEEP_MS = 30_000;
/** The first rest of work at the head that failed: there a poll may be ten minutes away where blocks are told. */
const HEAD_REST_MS = 2_000;
/** The longest that work which fails again and again waits between two tries. */
const REST_MAX_MS = 10_000;
/** How often it is looked whether there is progress: often, against the time after which its absence is a stall. */
const WATCHES_PER_STALL = 8;
const WATCH_MAX_MS = 5_000;

const STEP_FAILED = 'a step at the head failed';
const BACKFILL_FAILED = 'a backfill was interrupted';
const WATCH_FAILED = 'indexing progress could not be checked';

export interface NetworkRunnerOptions {
  readonly settings: NetworkSettings;
  readonly pool: pg.Pool;
  readonly decode: DecodePool;
  readonly reserve?: DiskReserve | undefined;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/** How a network does, for metrics. */
export interface NetworkHealth {
  /** Undefined before the first look. */
  readonly freshness: Freshness | undefined;
  readonly isStalled: boolean;
  readonly isSubscribed: boolean;
  readonly endpoints: readonly EndpointReport[];
}

/** Indexes one network: the tail follows the head, the backfill reads what lies below the floor. */
export class NetworkRunner {
  readonly #options: NetworkRunnerOptions;
  readonly #rpc: RpcPool;
  readonly #feed: HeadFeed;
  readonly #recognition: Recognition;
  #changed = new AbortController();
  /** Ends the rest of a backfill that has something to do. */
  #roused = new AbortController();
  /** By the time that passes, as are all rests: a clock that is set back makes them no longer. */
  #lastUpkeepMs = Number.NEGATIVE_INFINITY;
  #isStalled = false;
  /** By what failed. */
  readonly #failures = new Map<string, Failures>();
  readonly #startedMs = performance.now();
  #freshness: Freshness | undefined;
  /** The head when a wait began in which nothing was told. */
  #silentHead: number | undefined;

  constructor(options: NetworkRunnerOptions) {
    const { settings, log, signal } = options;
    this.#options = options;
    this.#rpc = new RpcPool({
      urls: settings.endpoints,
      timeoutMs: settings.timeout_ms,
      restAfterLieMs: settings.lie_rest_ms,
      log: log.child({ network: settings.name }),
      signal,
    });
    const { subscriptions: urls, timeout_ms: timeoutMs, name: network } = settings;
    this.#feed = new HeadFeed({ urls, timeoutMs, network, log, signal });
    this.#recognition = new Recognition({ ...options, rpc: this.#rpc, onReset: () => this.wake() });
  }

  get name(): string {
    return this.#options.settings.name;
  }

  report(): EndpointReport[] {
    return this.#rpc.report();
  }

  /** As it was when the progress was last looked at. */
  get health(): NetworkHealth {
    return {
      freshness: this.#freshness,
      isStalled: this.#isStalled,
      isSubscribed: this.#feed.isLive,
      endpoints: this.report(),
    };
  }

  /** Something is asked for that was not, or no more: looks at once. */
  wake(): void {
    this.#changed.abort();
    this.#feed.ring();
  }

  /** Makes the network known, and what the settings ask for. */
  async prepare(): Promise<number> {
    const { settings, pool } = this.#options;
    const network = await ensureNetwork(pool, settings.name, settings.chain_id);
    for (const { address, abi, start_block: startBlock = 0, transactions = false } of settings.contracts)
      await watchContract(pool, {
        network: settings.name,
        contract: address,
        abi,
        startBlock,
        transactions,
        owner: SETTINGS_OWNER,
      });
    return network.id;
  }

  /** Runs until the signal ends. Failures are logged and tried again. */
  async run(networkId: number): Promise<void> {
    const { pool, settings } = this.#options;
    const partitions = new Partitions(pool, networkId, settings.partition_blocks);
    const follow = async () => {
      await this.#retry('recognise', () => this.#recognition.recognise(networkId));
      await Promise.all([
        this.#retry('follow the head of', () => this.#runTail(networkId, partitions)),
        this.#retry('read the past of', () => this.#runBackfill(networkId, partitions)),
      ]);
    };
    await Promise.all([
      follow(),
      this.#retry('subscribe to', () => this.#feed.run()),
      this.#retry('watch the progress of', () => this.#runWatch()),
    ]);
  }

  async #runTail(networkId: number, partitions: Partitions): Promise<void> {
    const { settings, pool, log, signal, reserve = BOUNDLESS } = this.#options;
    const tail = new Tail({
      pool,
      rpc: this.#rpc,
      partitions,
      networkId,
      blooms: settings.blooms,
      finalityTag: settings.finality === 'tag',
      finalityDepth: settings.finality_depth,
      reorgDepthMax: settings.reorg_depth_max,
      log,
    });
    while (!signal.aborted) {
      let outcome: StepOutcome = 'idle';
      try {
        reserve.take();
        outcome = await tail.step();
        // The floor was made or has moved: what lies below it is the backfill's.
        if (outcome === 'behind') this.#roused.abort();
        // A look that failed is over when the next one has not.
        if (outcome !== 'halted' || (await this.#recognition.lookAgain(networkId))) this.#worked(STEP_FAILED);
      } catch (error) {
        let waitMs = settings.poll_ms;
        if (error instanceof OffChain) await this.#haltOffChain(networkId, error);
        else waitMs = this.#note(error, STEP_FAILED);
        await pause(waitMs, signal);
        continue;
      }
      if (outcome !== 'behind') await this.#waitForHead();
    }
  }

  /** Until the head is worth another look: something was told, or it is time to look unasked. */
  async #waitForHead(): Promise<void> {
    const feed = this.#feed;
    const { told } = feed;
    const { head } = this.#rpc;
    if (this.#silentHead !== undefined && head > this.#silentHead) feed.distrust();
    this.#silentHead = undefined;
    const { poll_ms: pollMs } = this.#options.settings;
    // A block that was told and that no endpoint has shown yet is on its way.
    if (!feed.isLive || head < told) return feed.wait(pollMs);
    await feed.wait(pollMs * POLLS_SAVED);
    if (feed.told === told) this.#silentHead = head;
  }

  async #runBackfill(networkId: number, partitions: Partitions): Promise<void> {
    const { settings, pool, decode, signal, reserve = BOUNDLESS } = this.#options;
    const backfill = new Backfill({
      pool,
      rpc: this.#rpc,
      decode,
      partitions,
      networkId,
      blooms: settings.blooms,
      verification: settings.verification,
      rangeBlocksMax: settings.range_blocks_max,
    });
    for (let turn = 0; !signal.aborted; turn++) {
      try {
        reserve.take();
        const network = await loadNetwork(pool, networkId);
        const order = turn % 2 === 0 ? 'nearest' : 'furthest';
        const scans = await listScans(pool, networkId);
        const pass = network.haltCode === null ? decidePass(scans, network.floor, order) : undefined;
        if (pass) {
          const isStale = () => signal.aborted || this.#changed.signal.aborted;
          await backfill.run(pass, isStale, () => {
            this.#worked(BACKFILL_FAILED);
            reserve.take();
          });
          this.#worked(BACKFILL_FAILED);
          // However long there is something to read.
          await deleteSomeRemoved(pool, networkId);
          // What has come up to the window is joined by the step at the head.
          this.#feed.ring();
        } else {
          await partitions.finish();
          await this.#upkeep(networkId);
          await this.#idle();
        }
      } catch (error) {
        let waitMs = BACKFILL_REST_MS;
        if (error instanceof OffChain) await this.#haltOffChain(networkId, error);
        else waitMs = this.#note(error, BACKFILL_FAILED);
        await this.#rest(waitMs);
      }
      if (this.#changed.signal.aborted) {
        this.#changed = new AbortController();
        partitions.forget();
      }
    }
  }

  /** What was read below finality is not of the chain: nothing is rewritten, a person has to look. */
  async #haltOffChain(networkId: number, { block }: OffChain): Promise<void> {
    const { pool, log } = this.#options;
    const code = 'REORG_BELOW_FINALITY';
    const message = `the blocks up to ${block} were final, but the endpoints' chain does not contain them: ${READ_AGAIN}`;
    log.error({ network: this.name, code }, message);
    try {
      await haltNetwork(pool, networkId, code, message);
    } catch (error) {
      this.#note(error, 'the network could not be halted');
    }
  }

  async #upkeep(networkId: number): Promise<void> {
    const { pool, signal } = this.#options;
    while (!signal.aborted && (await deleteSomeRemoved(pool, networkId)));
    if (performance.now() - this.#lastUpkeepMs < UPKEEP_MS) return;
    this.#lastUpkeepMs = performance.now();
    await mergeSpans(pool, networkId);
    await joinScans(pool, networkId);
  }

  /** Beside the other loops: one that waits for its endpoints, for however long, is what this is for. */
  async #runWatch(): Promise<void> {
    const { settings, signal } = this.#options;
    const everyMs = Math.min(WATCH_MAX_MS, settings.stall_ms / WATCHES_PER_STALL);
    while (!signal.aborted) {
      await this.#watchProgress();
      await pause(everyMs, signal);
    }
  }

  /** Never a silent stall: said once when it begins and once when it ends. */
  async #watchProgress(): Promise<void> {
    const { settings, pool, log } = this.#options;
    const network = this.name;
    const stallMs = stallMsOf(settings);
    try {
      const freshness = await findFreshness(pool, network);
      if (!freshness) return;
      const state = stateOf(freshness, stallMs, Date.now());
      // A process that has just begun has not stood still yet.
      const isNew = performance.now() - this.#startedMs <= stallMs;
      const stalled = state === 'halted' || (state === 'stalled' && !isNew);
      if (stalled && !this.#isStalled) {
        const silentMs = Date.now() - freshness.progressAt.getTime();
        log.error(
          { network, silent_ms: silentMs, halt: freshness.halt?.code, endpoints: this.#rpc.failures() },
          'the indexer makes no progress',
        );
      }
      if (!stalled && this.#isStalled) log.info({ network }, 'the indexer makes progress again');
      this.#isStalled = stalled;
      this.#freshness = freshness;
      this.#worked(WATCH_FAILED);
    } catch (error) {
      this.#note(error, WATCH_FAILED);
    }
  }

  /** Of a backfill that has nothing to do. */
  async #idle(): Promise<void> {
    await pause(IDLE_MS, AbortSignal.any([this.#roused.signal, this.#changed.signal, this.#options.signal]));
    this.#roused = new AbortController();
  }

  #rest(ms: number): Promise<boolean> {
    return pause(ms, AbortSignal.any([this.#changed.signal, this.#options.signal]));
  }

  /** @returns milliseconds to rest */
  #note(error: unknown, what: string): number {
    const { log, signal, settings } = this.#options;
    const baseMs = what === BACKFILL_FAILED ? BACKFILL_REST_MS : Math.min(HEAD_REST_MS, settings.poll_ms);
    // Another process was faster, or a watch changed: what is stored is the truth.
    if (signal.aborted || error instanceof Moved) return baseMs;
    let failures = this.#failures.get(what);
    if (!failures) {
      const fields = { network: this.name };
      failures = new Failures({ log, what, fields, baseMs, maxMs: REST_MAX_MS });
      this.#failures.set(what, failures);
    }
    return failures.note(error);
  }

  #worked(what: string): void {
    this.#failures.get(what)?.clear();
  }

  async #retry(what: string, body: () => Promise<void>): Promise<void> {
    const { signal } = this.#options;
    while (!signal.aborted) {
      try {
        await body();
        return;
      } catch (error) {
        await pause(this.#note(error, `could not ${what} the network`), signal);
      }
    }
  }
}
