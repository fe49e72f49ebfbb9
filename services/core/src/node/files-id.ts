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

/** Of so many files that the database knows one has to be in a directory of which it does not know the name. */
const WITNESSES = 16;

/**
 * Hashes of some files that are in the directory of files, if it is the one that this database goes with: what a database that was written
 * before directories were noted knows it by. None where it may be any.
 */
export async function readWitnesses(
  db: Kysely<Schema>,
  { roles, lostKeys }: Pick<KeySettings, 'roles' | 'lostKeys'>,
): Promise<readonly string[]> {
  if (!isNeededBy(roles, 'node') || lostKeys.includes(FILES_ID)) return [];
  const known = await db
    .selectFrom('files')
    .select('hash')
    .where(sql<boolean>`length(hash) = 64`)
    .orderBy('hash')
    .limit(WITNESSES)
    .execute();
  return known.map(({ hash }) => hash);
}

/**
 * Notes by what the directory is known. Of several processes that start at once, the first one's stays.
 * @returns what it is known by now
 */
export async function noteFilesId(
  db: Kysely<Schema>,
  { roles, lostKeys }: Pick<KeySettings, 'roles' | 'lostKeys'>,
  id: string,
): Promise<string> {
  if (!isNeededBy(roles, 'node')) return id;
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
  const { fingerprint } = await db
    .selectFrom('key_files')
    .select('fingerprint')
    .where('name', '=', FILES_ID)
    .executeTakeFirstOrThrow();
  return fingerprint;
}
