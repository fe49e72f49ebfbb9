import { type Kysely, sql } from 'kysely';
import type { Schema } from '../store/schema.ts';
import { FILES_ID, isNeededBy, type KeySettings } from './key-files.ts';

/**
 * What the directory of files is known by that this database goes with; undefined where it may be any: none was noted yet, it is said to
 * be lost, or the process has no use for it.
 */
export async function readFilesId(
  db: Kysely<Schema>,
  { roles, lostKeys }: Pick<KeySettings, 'roles' | 'lostKeys'>,
): Promise<string | undefined> {
  if (!isNeededBy(roles, 'node') || lostKeys.includes(FILES_ID)) return undefined;
  const known = await db.selectFrom('key_files').select('fingerprint').where('name', '=', FILES_ID).execute();
  return known[0]?.fingerprint;
}

/** Notes by what the directory is known. Of several processes that start at once, the first one's stays. */
export async function noteFilesId(
  db: Kysely<Schema>,
  { roles, lostKeys }: Pick<KeySettings, 'roles' | 'lostKeys'>,
  id: string,
): Promise<void> {
  if (!isNeededBy(roles, 'node')) return;
  const isReplaced = lostKeys.includes(FILES_ID);
  await db
    .insertInto('key_files')
    .values({ name: FILES_ID, fingerprint: id })
    .onConflict((conflict) =>
      isReplaced
        ? conflict.column('name').doUpdateSet({ fingerprint: id, noted_at: sql`now()` })
        : conflict.doNothing(),
    )
    .execute();
}
