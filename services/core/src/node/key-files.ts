import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Logger } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import { type Kysely, sql } from 'kysely';
import type { Schema } from '../store/schema.ts';

/** What a node cannot do without among the files of its data directory, by what it is in the identity of a process. */
export const KEY_FILES = {
  node: 'node.key',
  sealing: 'sealing.key',
  vrf: 'vrf-keys.json',
} as const;

/**
 * A database that a node has worked with wants the keys of that node: with others it would go on as another node, whose webhooks have
 * secrets that nobody can open.
 *
 * @param lost files that are made anew all the same
 * @throws AppError INVALID_CONFIG where one is missing from the data directory
 */
export async function checkKeyFiles(
  db: Kysely<Schema>,
  dataDir: string,
  lost: readonly string[],
): Promise<void> {
  const known = await db.selectFrom('key_files').select('name').execute();
  const missing = known
    .map(({ name }) => name)
    .filter((name) => !lost.includes(name) && !existsSync(join(dataDir, name)));
  if (missing.length === 0) return;
  throw new AppError(
    'INVALID_CONFIG',
    `${missing.join(', ')} of the node that has this database: missing from ${dataDir}. Copy from its data directory, or restore from a backup (skerry restore); what is lost for good is made anew with SKERRY_CORE_LOST_KEYS=${missing.join(',')} (docs/backup.md)`,
    { details: { missing } },
  );
}

/**
 * Notes by which keys the node works.
 *
 * @param identity a fingerprint of each, by the names of KEY_FILES
 * @param more fingerprints of the keys that the node has beside them, such as those of random values that it gave before
 * @param lost files that may be others than before
 * @throws AppError INVALID_CONFIG where one is another than the node had: the data directory, or the database, is another node's
 */
export async function noteKeyFiles(
  db: Kysely<Schema>,
  identity: Readonly<Record<string, string>>,
  { more, lost }: { readonly more: readonly string[]; readonly lost: readonly string[] },
  log: Logger,
): Promise<void> {
  const before = await db.selectFrom('key_files').selectAll().execute();
  const changed = Object.entries(KEY_FILES).flatMap(([what, name]) => {
    const fingerprint = identity[what];
    const noted = before.find((one) => one.name === name)?.fingerprint;
    return fingerprint === undefined || fingerprint === noted ? [] : [{ name, fingerprint, noted }];
  });
  const foreign = changed
    .filter(({ name, noted }) => noted !== undefined && !more.includes(noted) && !lost.includes(name))
    .map(({ name }) => name);
  if (foreign.length > 0) throw foreignKeys(foreign);
  for (const { name, fingerprint, noted } of changed) {
    if (noted !== undefined)
      log.warn({ name, before: noted, now: fingerprint }, 'the node has another key than before');
    await db
      .insertInto('key_files')
      .values({ name, fingerprint })
      .onConflict((conflict) => conflict.column('name').doUpdateSet({ fingerprint, noted_at: sql`now()` }))
      .execute();
  }
}

const foreignKeys = (names: readonly string[]) =>
  new AppError(
    'INVALID_CONFIG',
    `${names.join(', ')}: not of the node that has this database. Name that node's database or data directory, or restore its keys from a backup (skerry restore); if they were replaced on purpose, start once with SKERRY_CORE_LOST_KEYS=${names.join(',')} (docs/backup.md)`,
    { details: { foreign: names } },
  );
