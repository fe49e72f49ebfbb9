import { followInFile, type Logger, readTextIfAny } from '@skerry/kit';
import { fieldsOf } from '@skerry/protocol';
import type { Kysely } from 'kysely';
import { raiseEvents, readChanges } from '../intake/pipeline/set-changes.ts';
import type { SetPlace } from '../intake/pipeline/set-place.ts';
import type { Schema } from '../store/schema.ts';

/** How far the process had followed the database, in a file beside it: what the database cannot know once it has gone back. */
export interface KeptPlace extends AsyncDisposable {
  /** Whether the database turned out to be older than the last process of this file left it. */
  readonly hasLost: boolean;
  /** The database has come so far. Written once a second; a kill loses the last second. */
  note(place: SetPlace): void;
}

function parsePlace(text: string | undefined): SetPlace | undefined {
  try {
    const { seq, mark, last_event: lastEvent } = fieldsOf(JSON.parse(text ?? ''));
    const isPlace = Number.isSafeInteger(seq) && Number.isSafeInteger(lastEvent);
    if (!isPlace || !(mark === null || typeof mark === 'string')) return undefined;
    return { seq: seq as number, mark, lastEvent: lastEvent as number };
  } catch {
    return undefined;
  }
}

const formatPlace = ({ seq, mark, lastEvent }: SetPlace) =>
  `${JSON.stringify({ seq, mark, last_event: lastEvent })}\n`;

/** Whether the database has not what it had at a place, or has another history since. */
async function lacks(db: Kysely<Schema>, place: SetPlace): Promise<boolean> {
  const { last_seq: last } = await db
    .selectFrom('event_counter')
    .select('last_seq')
    .executeTakeFirstOrThrow();
  return last < place.lastEvent || (await readChanges(db, place)).state === 'other';
}

/**
 * Compares the database with what the last process of this file knew of it, before anybody writes. A copy of the server's directory that was
 * put back has the cluster and the timeline that it had (LINEAGE): nothing in it says that it is old. Events get numbers above all that
 * were given. A file that cannot be read or written costs this memory alone.
 */
export async function openKeptPlace(
  path: string,
  { db, log }: { readonly db: Kysely<Schema>; readonly log: Logger },
): Promise<KeptPlace> {
  const complain = (error: unknown) => {
    log.warn({ err: error, path }, 'how far the database has come could not be kept');
    return undefined;
  };
  const before = parsePlace(await readTextIfAny(path).catch(complain));
  const hasLost = before !== undefined && (await lacks(db, before));
  if (hasLost) {
    await raiseEvents(db, before.lastEvent);
    log.error(
      { batches_before: before.seq, last_event_before: before.lastEvent },
      'the database is older than this node left it, as when a copy of it was put back; peers are asked for what is missing, and what none of them has is lost (docs/backup.md)',
    );
  }
  let place = before;
  const file = followInFile(path, () => (place ? formatPlace(place) : ''), complain);
  return {
    hasLost,
    note(next) {
      if (place?.mark === next.mark && place.seq === next.seq && place.lastEvent === next.lastEvent) return;
      place = next;
      file.changed();
    },
    [Symbol.asyncDispose]: () => file[Symbol.asyncDispose](),
  };
}
