import { type Handlers, Slots } from '@skerry/kit';
import type { STATE_API } from '@skerry/protocol/api/core/state';
import type { Kysely } from 'kysely';
import { digestDerived, digestInstances, digestMessages, digestState, readMark } from '../state/digest.ts';
import { CONNECTIONS } from '../store/connections.ts';
import type { Schema } from '../store/schema.ts';
import type { Rooms } from './rooms.ts';

/**
 * Reading everything has a price: while nothing changed the answer is the same, and callers at once share one reading. Who asks
 * while an older state is read waits, and shares the next reading with all who wait.
 */
function shareReading<T>(
  db: Kysely<Schema>,
  slots: Slots,
  read: (db: Kysely<Schema>) => Promise<T>,
): () => Promise<T> {
  let last: { readonly mark: string; readonly read: Promise<T> } | undefined;
  /** What did not begin yet. */
  let next: Promise<T> | undefined;
  const begin = async () => {
    next = undefined;
    const mark = await readMark(db);
    // Whoever asked while that was looked up is next, though nothing changed.
    if (last?.mark === mark) return last.read;
    const reading = { mark, read: read(db) };
    reading.read.catch(() => {
      if (last === reading) last = undefined;
    });
    last = reading;
    return reading.read;
  };
  return async () => {
    const mark = await readMark(db);
    if (last?.mark === mark) return last.read;
    next ??= slots.run(begin);
    return next;
  };
}

/** State: what two nodes compare to see that they agree, and anybody can compute anew (docs/decisions.md 3). */
export function stateHandlers({ db }: Pick<Rooms, 'db'>): Handlers<typeof STATE_API> {
  // They take minutes on a large node, and a connection to its database each.
  const [everything, instances] = [new Slots(CONNECTIONS.digests), new Slots(CONNECTIONS.digests)];
  return {
    getStateDigest: shareReading(db, everything, digestState),
    getMessagesDigest: () => digestMessages(db),
    getDerivedDigests: shareReading(db, everything, digestDerived),
    getInstancesDigest: shareReading(db, instances, digestInstances),
  };
}
