import { type Kysely, sql } from 'kysely';
import type { Schema } from '../../store/schema.ts';

/**
 * The number of the first event at this time or later, by halving: the log's times rise with its numbers, and an index
 * on them would cost every event something for the rare replay. Without such an event it is one after the last.
 */
export async function findFirstSeq(db: Kysely<Schema>, timeMs: number): Promise<number> {
  const { last_seq } = await db.selectFrom('event_counter').select('last_seq').executeTakeFirstOrThrow();
  if (timeMs === Number.POSITIVE_INFINITY) return last_seq + 1;
  let low = 1;
  let high = last_seq + 1;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const { rows } = await sql<{ time_ms: number }>`
      select time_ms from events where seq >= ${middle} order by seq limit 1`.execute(db);
    if (rows[0] === undefined || rows[0].time_ms >= timeMs) high = middle;
    else low = middle + 1;
  }
  return low;
}
