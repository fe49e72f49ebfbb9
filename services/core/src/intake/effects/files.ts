import { sql } from 'kysely';
import { fileKey } from '../../store/dependency-keys.ts';
import { Effect, hashOf, made, undone } from '../effect.ts';

/** A blob that is at hand, and what it is. */
export interface UploadedFile {
  readonly hash: string;
  readonly sizeBytes: number;
  readonly contentType: string;
}

/** Files become known with the message that brings them; what waited for them is decided again. */
export const fileEffect = new Effect<UploadedFile>({
  async write(steps, { trx, changedKeys }) {
    const files = made(steps).map(({ data }) => data);
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
    for (const { hash } of files) changedKeys.add(fileKey(hash));
  },
});

/** The owner wants a file kept. What follows from the message alone: who knows the same messages keeps the same files. */
export const pinEffect = new Effect<{ readonly fileHash: string }>({
  after: [fileEffect],
  compared: {
    part: 'pins',
    rows: sql`select row(file_hash, message_hash, owner)::text as r from file_pins`,
  },
  async write(steps, { trx }) {
    const gone = undone(steps).map(hashOf);
    if (gone.length > 0) await trx.deleteFrom('file_pins').where('message_hash', 'in', gone).execute();
    const fresh = made(steps);
    if (fresh.length === 0) return;
    await sql`
      insert into file_pins (file_hash, message_hash, owner)
      select * from unnest(
        ${fresh.map(({ data }) => data.fileHash)}::text[], ${fresh.map(hashOf)}::text[],
        ${fresh.map(({ owner }) => owner)}::text[])
      on conflict do nothing`.execute(trx);
  },
});
