import type { EffectWriter } from './effect.ts';

/** Files become known with the message that brings them; what waited for them is decided again. */
export const writeFiles: EffectWriter<'file'> = async (effects, { trx, changedKeys }) => {
  const files = effects.filter((effect) => !effect.undo).map((effect) => effect.change.file);
  if (files.length === 0) return;
  await trx
    .insertInto('files')
    .values(
      files.map(({ hash, sizeBytes, contentType }) => ({
        hash,
        size_bytes: sizeBytes,
        content_type: contentType,
      })),
    )
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  for (const { hash } of files) changedKeys.add(`file:${hash}`);
};

export const writePins: EffectWriter<'pin'> = async (effects, { trx }) => {
  const gone = effects.filter((effect) => effect.undo).map((effect) => effect.accepted.message.itemHash);
  if (gone.length > 0) await trx.deleteFrom('file_pins').where('message_hash', 'in', gone).execute();
  const made = effects.filter((effect) => !effect.undo);
  if (made.length === 0) return;
  await trx
    .insertInto('file_pins')
    .values(
      made.map(({ change, accepted }) => ({
        file_hash: change.fileHash,
        message_hash: accepted.message.itemHash,
        owner: accepted.owner,
      })),
    )
    .onConflict((conflict) => conflict.doNothing())
    .execute();
};
