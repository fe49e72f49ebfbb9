import type { Handlers } from '@skerry/kit';
import type { STATE_API } from '@skerry/protocol/api/core/state';
import { digestState, readMark, type StateDigest } from '../state/digest.ts';
import type { Rooms } from './rooms.ts';

/** State: what two nodes compare to see that they agree (docs/decisions.md 3). */
export function stateHandlers({ db }: Pick<Rooms, 'db'>): Handlers<typeof STATE_API> {
  // Reading everything has a price; while nothing changed the answer is the same, and callers at once share one reading.
  let last: { readonly mark: string; readonly digest: Promise<StateDigest> } | undefined;
  return {
    async getStateDigest() {
      const mark = await readMark(db);
      if (last?.mark !== mark) {
        const digest = digestState(db);
        digest.catch(() => {
          last = undefined;
        });
        last = { mark, digest };
      }
      return last.digest;
    },
  };
}
