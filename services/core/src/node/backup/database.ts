import { withClient } from '@skerry/database';
import type { DatabaseFacts } from '@skerry/kit';
import type pg from 'pg';
import { MESSAGES } from '../../store/message-set.ts';

/** What a backup says of the database in it: asked when its end is fixed, so that all of it is in the copy. */
export function describeDatabase(connection: pg.ClientConfig): Promise<DatabaseFacts> {
  return withClient(connection, async (client) => {
    const { rows } = await client.query<{
      cursor: string;
      migrations: number;
      count: string | null;
      digest: string | null;
    }>(
      `select (select last_seq from event_counter)::text as cursor,
        (select count(*) from schema_migrations)::int as migrations,
        (select count from digests where name = $1)::text as count,
        (select sum from digests where name = $1)::text as digest`,
      [MESSAGES],
    );
    const { cursor, migrations, count, digest } = rows[0]!;
    return {
      event_cursor: cursor,
      messages: { count: Number(count ?? 0), digest: digest ?? '0'.repeat(64) },
      migrations,
    };
  });
}

/**
 * Events after the backup were given numbers that readers remember. What comes from now on gets higher ones, or they would
 * take it for what they have seen: milliseconds since 1970 are more than any log that began before has numbers.
 */
export function renumberEvents(connection: pg.ClientConfig, nowMs: number): Promise<string> {
  return withClient(connection, async (client) => {
    const { rows } = await client.query<{ cursor: string }>(
      'update event_counter set last_seq = greatest(last_seq + 1, $1::bigint) returning last_seq::text as cursor',
      [Math.floor(nowMs)],
    );
    return rows[0]!.cursor;
  });
}
