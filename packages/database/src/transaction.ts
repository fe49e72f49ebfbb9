import type pg from 'pg';

/**
 * Runs `body` in one transaction. After a failure the connection is used again where it took the rollback, and else closed: it may be in
 * any state. What `body` asks of it ends before `body` does.
 */
export async function inTransaction<T>(
  pool: pg.Pool,
  body: (client: pg.PoolClient) => Promise<T>,
  begin = 'begin',
): Promise<T> {
  const client = await pool.connect();
  let isSound = true;
  try {
    await client.query(begin);
    const result = await body(client);
    await client.query('commit');
    return result;
  } catch (error) {
    isSound = await client.query('rollback').then(
      () => true,
      () => false,
    );
    throw error;
  } finally {
    client.release(!isSound);
  }
}
