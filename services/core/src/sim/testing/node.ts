import type { Database } from '@skerry/database';
import type { Logger } from '@skerry/kit';
import type pg from 'pg';
import type { Emitter } from '../../chains/anchoring/emitter.ts';
import { eagerBatch } from '../../intake/verify/batch/testing/built.ts';
import { createInlineVerifier } from '../../intake/verify/verifier.ts';
import type { PeerLink } from '../../peers/sync/link.ts';
import { createDirectoryBlobStore } from '../../store/files/directory-store.ts';
import { FileFetcher } from '../../store/files/fetcher.ts';
import type { FileSource } from '../../store/files/fetching/source.ts';
import { MissedFiles } from '../../store/files/missed.ts';
import type { BlockSource } from '../../store/ipfs/gateways.ts';
import type { Schema } from '../../store/schema.ts';
import { createTestCore, type TestCore } from '../../testing/core.ts';
import { NodeAnchor } from './anchor.ts';
import type { ChainView } from './chain.ts';
import { randomAt, type SimClock } from './clock.ts';

/** A core node of the real code, on a real database, that can lose what it is writing. */
export interface SimNode {
  readonly at: number;
  readonly database: Database<Schema>;
  readonly clock: SimClock;
  readonly links: readonly PeerLink[];
  /** Nobody can reach it: it can reach others. */
  readonly isHidden: boolean;
  /** Where its files are. */
  readonly directory: string;
  readonly view: ChainView;
  readonly emitter: Pick<Emitter, 'look' | 'prepare' | 'send'> | undefined;
  readonly files: readonly FileSource[];
  readonly blocks: BlockSource;
  /** Undefined while it is down. */
  core: TestCore | undefined;
  fetcher: FileFetcher | undefined;
  missed: MissedFiles | undefined;
  anchor: NodeAnchor | undefined;
  /** In steps: when it comes back. */
  backAt: number;
  /** The power goes in the next transaction: before it is durable, or after it and before anybody is told. */
  torn: 'no' | 'before' | 'after';
}

class PowerGone extends Error {
  constructor() {
    super('the power is gone');
  }
}

async function loseTransaction(query: (text: string) => unknown, torn: 'before' | 'after'): Promise<never> {
  await query(torn === 'before' ? 'rollback' : 'commit');
  throw new PowerGone();
}

/** The database with transactions that can be lost when they are to be committed, as when the power goes. */
function tearable(database: Database<Schema>, findTorn: () => SimNode['torn']): Database<Schema> {
  const connect = async () => {
    const client = await database.pool.connect();
    let isLost = false;
    return new Proxy(client, {
      get(target, name) {
        const value = Reflect.get(target, name) as unknown;
        // Not async: COPY is a stream that must be had at once.
        if (name === 'query') {
          return (...args: unknown[]) => {
            const query = target.query.bind(target) as (...all: unknown[]) => unknown;
            if (isLost) return Promise.reject(new PowerGone());
            const torn = findTorn();
            if (args[0] !== 'commit' || torn === 'no') return query(...args);
            isLost = true;
            return loseTransaction(query, torn);
          };
        }
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
  };
  const pool = new Proxy(database.pool, {
    get(target, name) {
      if (name === 'connect') return connect;
      const value = Reflect.get(target, name) as unknown;
      return typeof value === 'function' ? value.bind(target) : value;
    },
  }) as pg.Pool;
  return { ...database, pool };
}

/** @param world what the node's process takes from its machine */
export async function startSimNode(
  node: SimNode,
  world: { readonly seed: number; readonly nowMs: number },
  log: Logger,
): Promise<TestCore> {
  const database = tearable(node.database, () => node.torn);
  const random = () => randomAt(world.seed, node.at, world.nowMs);
  const core = await createTestCore({
    database,
    blobs: await createDirectoryBlobStore(node.directory),
    blockSource: node.blocks,
    peers: node.links,
    now: () => node.clock.read(world.nowMs),
    uptime: () => world.nowMs,
    // The first node checks signatures in batches and the others do not: they must agree.
    ...(node.at === 0 ? { verifier: createInlineVerifier(await eagerBatch()) } : {}),
    // As it is unless said otherwise: what was away for longer is rejected, and comes nevertheless.
    pendingHorizonMs: 3_600_000,
    log,
  });
  node.core = core;
  node.missed = new MissedFiles({ ...core.rooms, namedBy: 'hash', random });
  const { files: sources, missed } = node;
  // One at a time: which of several comes first is the disk's to say, and the run would not replay.
  node.fetcher = new FileFetcher({ ...core.rooms, sources, missed, parallel: 1, random, log });
  node.anchor = new NodeAnchor({ core, database, view: node.view, emitter: node.emitter, random, log });
  return core;
}
