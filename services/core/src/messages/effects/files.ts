import { sql } from 'kysely';
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
  // A file may be named by the STORE message that keeps it.
  await sql`
    insert into file_pins (file_hash, message_hash, owner)
    select coalesce(kept.subject, made.named), made.message_hash, made.owner
    from unnest(
      ${made.map(({ change }) => change.fileHash)}::text[],
      ${made.map(({ accepted }) => accepted.message.itemHash)}::text[], ${made.map(({ accepted }) => accepted.owner)}::text[])
      as made (named, message_hash, owner)
    left join messages kept on kept.item_hash = made.named and kept.type = 'STORE'
    on conflict do nothing`.execute(trx);
};
