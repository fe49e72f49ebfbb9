import type { EffectWriter } from './effect.ts';

/** A FORGET in force names its targets; each of them is decided again. */
export const writeForgets: EffectWriter<'forget'> = async (effects, { trx, reconsider }) => {
  for (const { change } of effects) for (const target of change.targets) reconsider.add(target);
  const gone = effects.filter((effect) => effect.undo).map((effect) => effect.accepted.message.itemHash);
  if (gone.length > 0) await trx.deleteFrom('forgets').where('forget_hash', 'in', gone).execute();
  const made = effects
    .filter((effect) => !effect.undo)
    .flatMap(({ change, accepted }) =>
      change.targets.map((target) => ({ target, forget_hash: accepted.message.itemHash })),
    );
  for (let from = 0; from < made.length; from += ROWS_PER_STATEMENT) {
    await trx
      .insertInto('forgets')
      .values(made.slice(from, from + ROWS_PER_STATEMENT))
      .onConflict((conflict) => conflict.doNothing())
      .execute();
  }
};

/** A statement takes 65,535 parameters at most. */
const ROWS_PER_STATEMENT = 10_000;
