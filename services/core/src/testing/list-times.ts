import type { Pool, PoolClient } from 'pg';

/** How a list begins: what it tells the database of its time. */
const TIME = /set local statement_timeout = (\d+)/;

/**
 * Tells how long each list that begins may keep the database busy, in milliseconds, and whether it begins: `told` may wait, or throw. The
 * database itself ends none, however slow the machine is.
 */
export function watchListTimes(pool: Pool, told: (ms: number) => Promise<void> | void): Disposable {
  const watched = (client: PoolClient): PoolClient => {
    const query = async (text: string, values?: unknown[]) => {
      const [time, ms] = (typeof text === 'string' && TIME.exec(text)) || [];
      if (time === undefined) return client.query(text, values);
      const result = await client.query(text.replace(time, 'set local statement_timeout = 0'), values);
      await told(Number(ms));
      return result;
    };
    return Object.create(client, { query: { value: query } });
  };
  const connect: (callback?: () => void) => Promise<PoolClient> = Object.getPrototypeOf(pool).connect;
  const replaced = (callback?: () => void) =>
    callback ? connect.call(pool, callback) : connect.call(pool).then(watched);
  Object.assign(pool, { connect: replaced });
  return { [Symbol.dispose]: () => void Reflect.deleteProperty(pool, 'connect') };
}

/** What the database says of a statement that took too long. */
export const tooLong = () =>
  Object.assign(new Error('canceling statement due to statement timeout'), { code: '57014' });
