import type { Logger } from '@skerry/kit';
import type pg from 'pg';
import type { Database } from '../../db/connect.ts';
import type { Schema } from '../../db/schema.ts';
import type { PeerLink } from '../../sync/link.ts';
import { createTestCore, type TestCore } from '../../testing.ts';

/** A core node of the real code, on a real database, that can lose what it is writing. */
export interface SimNode {
  readonly at: number;
  readonly database: Database<Schema>;
  /** How far its clock is off. */
  readonly skewMs: number;
  readonly links: readonly PeerLink[];
  /** Undefined while it is down. */
  core: TestCore | undefined;
  /** In steps: when it comes back. */
  backAt: number;
  /** The next transaction is lost at its end. */
  isTorn: boolean;
}

async function loseTransaction(query: (text: string) => unknown): Promise<never> {
  await query('rollback');
  throw new Error('the power is gone');
}

/** The database with transactions that can be lost when they are to be committed, as when the power goes. */
function tearable(database: Database<Schema>, isTorn: () => boolean): Database<Schema> {
  const connect = async () => {
    const client = await database.pool.connect();
    return new Proxy(client, {
      get(target, name) {
        const value = Reflect.get(target, name) as unknown;
        // Not async: COPY is a stream that must be had at once.
        if (name === 'query') {
          return (...args: unknown[]) => {
            const query = target.query.bind(target) as (...all: unknown[]) => unknown;
            return args[0] === 'commit' && isTorn() ? loseTransaction(query) : query(...args);
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

export async function startSimNode(node: SimNode, nowMs: () => number, log: Logger): Promise<TestCore> {
  const core = await createTestCore({
    database: tearable(node.database, () => node.isTorn),
    peers: node.links,
    now: () => nowMs() + node.skewMs,
    pendingHorizonMs: 7 * 24 * 3_600_000,
    log,
  });
  node.core = core;
  return core;
}
