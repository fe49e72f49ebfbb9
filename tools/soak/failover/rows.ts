import { openDatabase } from '@skerry/database';
import { createLogger } from '@skerry/kit';
import { addressOf, databaseUrl, type Name } from './page.ts';

/** What the primary says, or a server by name. */
async function ask<T extends object>(
  query: string,
  values: readonly unknown[] = [],
  name?: Name,
): Promise<T[]> {
  const url = databaseUrl();
  await using database = await openDatabase({
    databaseUrl: name ? url.replace(/@[^/]+/, `@${addressOf(name)}`) : url,
    dataDir: '/nonexistent',
    log: createLogger('soak', 'silent'),
  });
  const { rows } = await database.pool.query<T>(query, [...values]);
  return rows;
}

/** Every event of the log, as it is now; the hash of those about a message. */
export const readLog = () =>
  ask<{ seq: number; hash: string | null }>(
    "select seq, case when kind = 'message' then data->>'item_hash' end as hash from events order by seq",
  );

/** Those of the hashes that the database does not hold. @param name asks this server, where there may be two primaries */
export async function findMissing(hashes: readonly string[], name?: Name): Promise<string[]> {
  const rows = await ask<{ hash: string }>(
    'select hash from unnest($1::text[]) as hash where not exists (select from messages where item_hash = hash)',
    [hashes],
    name,
  );
  return rows.map(({ hash }) => hash);
}

/** Where a primary's log of writes ends, in bytes since its beginning. */
export async function readLogEnd(name: Name): Promise<number> {
  const [row] = await ask<{ bytes: string }>(
    "select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::text as bytes",
    [],
    name,
  );
  return Number(row!.bytes);
}
