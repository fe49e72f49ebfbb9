import { cached } from '@skerry/kit';
import { foldRunners, NETWORK_POST, parseRunnersContent, type Runner } from '@skerry/protocol';
import type { Kysely } from 'kysely';
import type { Schema } from '../../store/schema.ts';

/** Of one scheduler, this many of its latest lists are looked at: two can fall within a second, the resolution of a message's time. */
const LISTS_LOOKED_AT = 8;
/** Every compute node asks again and again: for them the list is kept so long. */
const KEPT_MS = 1_000;

/** The compute nodes that run programs, by the latest word of each scheduler that is trusted; each node once. */
export async function readRunners(db: Kysely<Schema>, schedulers: ReadonlySet<string>): Promise<Runner[]> {
  const lists: Parameters<typeof foldRunners>[0][number][] = [];
  for (const scheduler of schedulers) {
    const rows = await db
      .selectFrom('messages')
      .select('content')
      .where('status', '=', 'processed')
      .where('content_type', '=', NETWORK_POST.runners)
      .where('sender', '=', scheduler)
      .orderBy('time', 'desc')
      .orderBy('item_hash', 'desc')
      .limit(LISTS_LOOKED_AT)
      .execute();
    for (const { content } of rows)
      lists.push({
        sender: scheduler,
        content: parseRunnersContent((content as { content?: unknown } | null)?.content),
      });
  }
  return foldRunners(lists);
}

/** The list as it was a second ago at most, and as it is now. */
export function openRunners(db: Kysely<Schema>, schedulers: ReadonlySet<string>) {
  const listRunnersNow = () => readRunners(db, schedulers);
  return { listRunners: cached(KEPT_MS, listRunnersNow), listRunnersNow };
}
