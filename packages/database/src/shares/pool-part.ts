import { Slots } from '@skerry/kit';
import type pg from 'pg';
import { databaseAway } from '../failure.ts';

/** As long as for a connection of a pool. */
const WAIT_MS = 10_000;

/**
 * A part of a pool: whoever asks through it never has more than `max` of the pool's connections, and waits in line for them; the others
 * are for everybody else. Its `waitingCount` is of those who wait for the part, its end that of the pool.
 */
export function partOf(pool: pg.Pool, max: number): pg.Pool {
  const slots = new Slots(max, { waitMs: WAIT_MS });
  const connect = async (): Promise<pg.PoolClient> => {
    const slot = await slots.take().catch((error: unknown) => {
      throw databaseAway(error);
    });
    try {
      const client = await pool.connect();
      // The pool gives a client its `release` anew each time.
      const release = client.release.bind(client);
      client.release = (unsure) => {
        try {
          release(unsure);
        } finally {
          slot[Symbol.dispose]();
        }
      };
      return client;
    } catch (error) {
      slot[Symbol.dispose]();
      throw error;
    }
  };
  const query = async (text: string, values?: unknown[]) => {
    const client = await connect();
    let isSound = false;
    try {
      const result = await client.query(text, values);
      isSound = true;
      return result;
    } finally {
      client.release(!isSound);
    }
  };
  const part = { connect, query, end: async () => {} };
  return Object.defineProperty(part, 'waitingCount', { get: () => slots.waiting }) as unknown as pg.Pool;
}
