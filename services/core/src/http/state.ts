import type { HttpServer } from '@skerry/kit';
import Type from 'typebox';
import { digestState, readMark, type StateDigest } from '../state/digest.ts';
import { reads } from './declare.ts';
import type { Rooms } from './rooms.ts';

const SetDigest = Type.Object({
  count: Type.Integer(),
  digest: Type.String({
    pattern: '^[0-9a-f]{64}$',
    description: 'the same for the same set, in whatever order it grew',
  }),
});

/** State: what two nodes compare to see that they agree (docs/decisions.md 3). */
export async function stateRoutes(app: HttpServer, rooms: Rooms): Promise<void> {
  // Reading everything has a price; while nothing changed the answer is the same, and callers at once share one reading.
  let last: { readonly mark: string; readonly digest: Promise<StateDigest> } | undefined;

  app.get(
    '/state/digest',
    {
      schema: {
        summary: 'A digest of the messages in force and of the state that follows from them',
        response: {
          200: Type.Object({
            cursor: Type.String({ description: 'events up to here are in it' }),
            messages: SetDigest,
            derived: Type.Record(Type.String(), SetDigest),
          }),
        },
      },
      config: { ...reads(), rateClass: 'heavy' },
    },
    async () => {
      const mark = await readMark(rooms.db);
      if (last?.mark !== mark) {
        const digest = digestState(rooms.db);
        digest.catch(() => {
          last = undefined;
        });
        last = { mark, digest };
      }
      return last.digest;
    },
  );
}
