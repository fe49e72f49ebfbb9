import { type Kysely, sql } from 'kysely';
import type { Schema } from '../store/schema.ts';

/**
 * A forgotten message is out of every answer at once. What it said leaves the disk a day later: until then an older
 * message may still come that takes the permission to forget it back.
 */
export const ERASE_AFTER_MS = 24 * 3_600_000;
const ERASED_PER_ROUND = 1_000;

export async function eraseForgotten(db: Kysely<Schema>, nowMs: number): Promise<void> {
  // What is being decided again is left for another time: it may come back into force.
  await sql`
    update messages set content = null, source_text = null, erased = 'forgotten'
    where item_hash in (
      select item_hash from messages where status = 'forgotten' and content is not null
        and settled_at_ms <= ${nowMs - ERASE_AFTER_MS} limit ${ERASED_PER_ROUND}
      for update skip locked)`.execute(db);
}
