import type { EffectWriter } from './effect.ts';

export const writePrograms: EffectWriter<'program'> = async (effects, { trx }) => {
  const gone = effects.filter((effect) => effect.undo).map((effect) => effect.accepted.message.itemHash);
  if (gone.length > 0) await trx.deleteFrom('programs').where('program_hash', 'in', gone).execute();
  const made = effects.filter((effect) => !effect.undo);
  if (made.length === 0) return;
  await trx
    .insertInto('programs')
    .values(
      made.map(({ accepted: { message, owner }, change }) => ({
        program_hash: message.itemHash,
        owner,
        content: JSON.stringify(change.program),
        created: message.time,
      })),
    )
    .onConflict((conflict) => conflict.doNothing())
    .execute();
};
