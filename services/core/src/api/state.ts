import type { Handlers } from '@skerry/kit';
import type { STATE_API } from '@skerry/protocol/api/core/state';
import type { Kysely } from 'kysely';
import { digestDerived, digestInstances, digestMessages, digestState, readMark } from '../state/digest.ts';
import type { Schema } from '../store/schema.ts';
import type { Rooms } from './rooms.ts';

/** Reading everything has a price: while nothing changed the answer is the same, and callers at once share one reading. */
function shareReading<T>(db: Kysely<Schema>, read: (db: Kysely<Schema>) => Promise<T>): () => Promise<T> {
  let last: { readonly mark: string; readonly read: Promise<T> } | undefined;
  return async () => {
    const mark = await readMark(db);
    if (last?.mark !== mark) {
      const reading = read(db);
      reading.catch(() => {
        last = undefined;
      });
      last = { mark, read: reading };
    }
    return last.read;
  };
}

/** State: what two nodes compare to see that they agree, and anybody can compute anew (docs/decisions.md 3). */
export function stateHandlers({ db }: Pick<Rooms, 'db'>): Handlers<typeof STATE_API> {
  return {
    getStateDigest: shareReading(db, digestState),
    getMessagesDigest: () => digestMessages(db),
    getDerivedDigests: shareReading(db, digestDerived),
    getInstancesDigest: shareReading(db, digestInstances),
  };
}
