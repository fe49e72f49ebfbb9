import type { DiskReserve } from '@skerry/database';
import type { Logger } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import type pg from 'pg';
import { DecodePool } from './decode/pool.ts';
import { type NetworkHealth, NetworkRunner } from './network.ts';
import type { EndpointReport } from './rpc/pool.ts';
import { type IndexerSettings, stallMsOf } from './settings.ts';
import { unwatchContract, type WatchRequest, watchContract } from './watch.ts';

export interface IndexerOptions {
  readonly pool: pg.Pool;
  readonly settings: IndexerSettings;
  readonly reserve?: DiskReserve | undefined;
  readonly log: Logger;
}

/** The indexed chains as the doors see them. */
export interface Indexer extends AsyncDisposable {
  readonly pool: pg.Pool;
  readonly settings: IndexerSettings;
  /**
   * Indexes what the settings name, until what it gives is disposed of; one process of several on a database is enough. Resolves
   * when the networks are known; the chains are read meanwhile.
   */
  begin(): Promise<AsyncDisposable>;
  /**
   * Asks for a contract on behalf of an owner, within the limit of one owner. Throws what `watchContract` throws, NETWORK_NOT_FOUND
   * also for a network that was read once and is in the settings no more.
   */
  watch(request: WatchRequest): Promise<void>;
  /** Throws NETWORK_NOT_FOUND, WATCH_NOT_FOUND. */
  unwatch(request: Pick<WatchRequest, 'network' | 'contract' | 'owner'>): Promise<void>;
  /** What the endpoints of a network cost and how they do; empty where another process indexes it. */
  report(network: string): EndpointReport[];
  /** Every network that this process indexes. */
  health(): ReadonlyMap<string, NetworkHealth>;
  /** Milliseconds without progress after which a network is stalled; undefined where the settings lack it. */
  stallMs(network: string): number | undefined;
}

/** The indexed chains on this database. Nothing is read of them before `begin`. */
export function openIndexer({ pool, settings, reserve, log }: IndexerOptions): Indexer {
  const decode = new DecodePool(settings.decodeThreads);
  let runners: readonly NetworkRunner[] = [];
  const wake = (network: string) => runners.find(({ name }) => name === network)?.wake();
  return {
    pool,
    settings,
    async begin() {
      const stop = new AbortController();
      const running: Promise<void>[] = [];
      const end = async () => {
        stop.abort();
        await Promise.all(running);
        runners = [];
      };
      runners = settings.networks.map(
        (network) =>
          new NetworkRunner({ settings: network, pool, decode, reserve, log, signal: stop.signal }),
      );
      try {
        for (const runner of runners) running.push(runner.run(await runner.prepare()));
      } catch (error) {
        await end();
        throw error;
      }
      return { [Symbol.asyncDispose]: end };
    },
    async watch(request) {
      checkIsRead(settings, request.network);
      try {
        await watchContract(pool, request, settings);
      } finally {
        // Some of it may have been had all the same.
        wake(request.network);
      }
    },
    async unwatch(request) {
      await unwatchContract(pool, request, settings);
      wake(request.network);
    },
    report: (network) => runners.find(({ name }) => name === network)?.report() ?? [],
    health: () => new Map(runners.map((runner) => [runner.name, runner.health])),
    stallMs(network) {
      const found = settings.networks.find(({ name }) => name === network);
      return found && stallMsOf(found);
    },
    [Symbol.asyncDispose]: () => decode[Symbol.asyncDispose](),
  };
}

function checkIsRead({ networks: read }: IndexerSettings, network: string): void {
  const networks = read.map(({ name }) => name);
  if (networks.includes(network)) return;
  const list = networks.length === 0 ? 'it reads none' : `it reads ${networks.join(', ')}`;
  throw new AppError('NETWORK_NOT_FOUND', `this node does not read ${JSON.stringify(network)}: ${list}`, {
    details: { networks },
  });
}

/** Opens an indexer, and begins. */
export async function startIndexer(options: IndexerOptions): Promise<Indexer> {
  await using stack = new AsyncDisposableStack();
  const indexer = stack.use(openIndexer(options));
  stack.use(await indexer.begin());
  const owned = stack.move();
  return { ...indexer, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}
