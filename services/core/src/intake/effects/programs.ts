import { effectiveTime, type Program } from '@skerry/protocol';
import { sql } from 'kysely';
import { standingColumn, standingOf } from '../../state/programs/standing.ts';
import { Effect, hashOf, made, undone } from '../effect.ts';

/** Programs can be called while their message is in force. */
export const programEffect = new Effect<Program>({
  compared: { part: 'programs', rows: sql`select to_jsonb(p)::text as r from programs p` },
  isByDate: () => true,
  async write(steps, { trx }) {
    const gone = undone(steps).map(hashOf);
    if (gone.length > 0) await trx.deleteFrom('programs').where('program_hash', 'in', gone).execute();
    const fresh = made(steps);
    if (fresh.length === 0) return;
    await trx
      .insertInto('programs')
      .values(
        fresh.map(({ message, owner, data }) => {
          const standing = standingOf(message.content, data);
          return {
            ...{ program_hash: message.itemHash, owner, content: JSON.stringify(data) },
            ...{ created: message.time, effective: effectiveTime(message) },
            standing: standing && standingColumn(standing),
          };
        }),
      )
      .onConflict((conflict) => conflict.doNothing())
      .execute();
  },
});
