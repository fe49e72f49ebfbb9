import { cached } from '@skerry/kit';
import { NETWORK_POST, parseRunnersContent, type Runner, type RunnersContent } from '@skerry/protocol';
import type { Kysely } from 'kysely';
import type { Schema } from '../../store/schema.ts';

/** Of one scheduler, this many of its latest lists are looked at: two can fall within a second, the resolution of a message's time. */
const LISTS_LOOKED_AT = 8;
/** Every compute node asks again and again: for them the list is kept so long. */
const KEPT_MS = 1_000;

function latestOf(lists: readonly RunnersContent[]): RunnersContent | undefined {
  return lists.toSorted((a, b) => a.decided_at_ms - b.decided_at_ms).at(-1);
}

/** The compute nodes that run programs, by the latest word of each scheduler that is trusted; each node once. */
export async function readRunners(db: Kysely<Schema>, schedulers: ReadonlySet<string>): Promise<Runner[]> {
  const runners = new Map<string, Runner>();
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
    const lists = rows.map(({ content }) =>
      parseRunnersContent((content as { content?: unknown } | null)?.content),
    );
    for (const runner of latestOf(lists)?.runners ?? []) runners.set(runner.node_id, runner);
  }
  return [...runners.values()];
}

/** The list as it was a second ago at most, and as it is now. */
export function openRunners(db: Kysely<Schema>, schedulers: ReadonlySet<string>) {
  const listRunnersNow = () => readRunners(db, schedulers);
  return { listRunners: cached(KEPT_MS, listRunnersNow), listRunnersNow };
}
