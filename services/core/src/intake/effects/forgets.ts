import { Effect, hashOf, made, undone } from '../effect.ts';

/** A statement takes 65,535 parameters at most. */
const ROWS_PER_STATEMENT = 10_000;

/** A FORGET in force names its targets; each of them is decided again. */
export const forgetEffect = new Effect<{ readonly targets: readonly string[] }>({
  rowsOf: ({ targets }) => targets.length,
  async write(steps, { trx, reconsider }) {
    for (const { data } of steps) for (const target of data.targets) reconsider.add(target);
    const gone = undone(steps).map(hashOf);
    if (gone.length > 0) await trx.deleteFrom('forgets').where('forget_hash', 'in', gone).execute();
    const rows = made(steps).flatMap(({ data, message }) =>
      data.targets.map((target) => ({ target, forget_hash: message.itemHash })),
    );
    for (let from = 0; from < rows.length; from += ROWS_PER_STATEMENT) {
      await trx
        .insertInto('forgets')
        .values(rows.slice(from, from + ROWS_PER_STATEMENT))
        .onConflict((conflict) => conflict.doNothing())
        .execute();
    }
  },
});
