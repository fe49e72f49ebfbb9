import type pg from 'pg';
import { processIdOf } from '../wire.ts';

interface Told {
  readonly own: number;
  readonly room: number;
}

/** Those that the server keeps for its superusers and for the roles that it reserves some for are nobody else's. */
const ASK = `
  select pg_backend_pid() as own, least(
    current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
      - coalesce(current_setting('reserved_connections', true)::int, 0),
    (select nullif(rolconnlimit, -1) from pg_roles where rolname = current_user),
    (select nullif(datconnlimit, -1) from pg_database where datname = current_database())) as room`;

/**
 * How many connections the server lets this role have to this database, of all processes together; undefined behind a pooler, which has
 * callers wait for the few that it has.
 */
export async function readConnectionRoom(pool: pg.Pool): Promise<number | undefined> {
  const client = await pool.connect();
  try {
    const { rows } = await client.query<Told>(ASK);
    const { own, room } = rows[0]!;
    // A pooler tells numbers of its own making.
    return own === processIdOf(client) ? room : undefined;
  } finally {
    client.release();
  }
}
