import { AppError } from '@skerry/protocol';
import type pg from 'pg';
import { databaseAway } from '../failure.ts';

/** Who may have a connection, and when. */
export interface ConnectionTurns {
  /** It is given back when it is disposed of. May throw. */
  take(): Promise<Disposable>;
  /** How many wait for one. */
  readonly waiting: number;
}

/** Connections that those who have turns were given and have not given back. */
export interface Given {
  connections: number;
}

/**
 * A part of a pool: whoever asks through it has a turn for each of the pool's connections, and waits in line for it; connections beyond
 * those that have turns are for everybody else. Its `waitingCount` is of those who wait for turns, its end that of the pool.
 * Where nobody who has a turn was given a connection, those who are refused one are told DATABASE_UNAVAILABLE: they waited for nobody else.
 * @param given of all parts whose turns are of the same connections: another may have them all
 */
export function partOf(pool: pg.Pool, turns: ConnectionTurns, given: Given = { connections: 0 }): pg.Pool {
  const takeTurn = async () => {
    try {
      return await turns.take();
    } catch (error) {
      throw given.connections === 0 && error instanceof AppError ? databaseAway(error) : error;
    }
  };
  const connect = async (): Promise<pg.PoolClient> => {
    const turn = await takeTurn();
    try {
      const client = await pool.connect();
      given.connections++;
      // The pool gives a client its `release` anew each time.
      const { release } = client;
      const giveBack = (unsure?: Error | boolean): void => {
        // A client that is nobody's keeps nobody's turn.
        client.release = release;
        try {
          release.call(client, unsure);
          given.connections--;
        } finally {
          turn[Symbol.dispose]();
        }
      };
      // A function that is made where it is assigned to a property V8 places among old objects, where it keeps its turn, and all that
      // hangs on it, until the whole heap is collected.
      client.release = giveBack;
      return client;
    } catch (error) {
      turn[Symbol.dispose]();
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
  return Object.defineProperty(part, 'waitingCount', { get: () => turns.waiting }) as unknown as pg.Pool;
}
