import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createSigner } from '@skerry/client';
import { type Logger, loadKeyFile } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import { type Kysely, sql } from 'kysely';
import type { Schema } from '../store/schema.ts';
import { isNeededBy, KEY_FILES, type KeyName, type KeySettings } from './key-files.ts';
import { fingerprintOf } from './sealing-key.ts';
import { readVrfPublicKeys } from './vrf/key-file.ts';

/** Fingerprints of the keys in a file, in the form in which the database has them. Throws INVALID_CONFIG for what is no such file. */
const readFingerprints: Record<KeyName, (path: string) => Promise<readonly string[]>> = {
  node: async (path) => [createSigner(await loadKeyFile(path)).address],
  sealing: async (path) => [fingerprintOf(await loadKeyFile(path))],
  vrf: readVrfPublicKeys,
};

/**
 * A database that a node has worked with wants the keys of that node: with others it would go on as another node, whose webhooks have
 * secrets that nobody can open. Looks before anything is written there, migrations among it: the database may be another node's.
 *
 * @param roles of the process: a key that it does not work with has to be there, and may be any
 * @param lost files that are made anew all the same
 * @throws AppError INVALID_CONFIG where one is missing from the data directory, or is another than the database knows
 */
export async function checkKeyFiles(
  db: Kysely<Schema>,
  { dataDir, roles, lostKeys: lost }: KeySettings,
): Promise<void> {
  const { rows } = await sql<{ is: boolean }>`select to_regclass('key_files') is not null as is`.execute(db);
  // Empty, or of a release that noted no keys.
  if (!rows[0]?.is) return;
  const known = await db.selectFrom('key_files').select(['name', 'fingerprint']).execute();
  const missing: string[] = [];
  const foreign: string[] = [];
  for (const [key, name] of Object.entries(KEY_FILES) as [KeyName, string][]) {
    const noted = known.find((one) => one.name === name)?.fingerprint;
    if (noted === undefined || lost.includes(name)) continue;
    const path = join(dataDir, name);
    if (!existsSync(path)) missing.push(name);
    else if (isNeededBy(roles, key) && !(await readFingerprints[key](path)).includes(noted))
      foreign.push(name);
  }
  if (missing.length > 0) throw missingKeys(missing, dataDir);
  if (foreign.length > 0) throw foreignKeys(foreign);
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

const missingKeys = (names: readonly string[], dataDir: string) =>
  new AppError(
    'INVALID_CONFIG',
    `${names.join(', ')} of the node that has this database: missing from ${dataDir}. Copy from its data directory, or restore from a backup (skerry restore); what is lost for good is made anew with SKERRY_CORE_LOST_KEYS=${names.join(',')} (docs/backup.md)`,
    { details: { missing: names } },
  );

const foreignKeys = (names: readonly string[]) =>
  new AppError(
    'INVALID_CONFIG',
    `${names.join(', ')}: not of the node that has this database. Name that node's database or data directory, or restore its keys from a backup (skerry restore); if they were replaced on purpose, start once with SKERRY_CORE_LOST_KEYS=${names.join(',')} (docs/backup.md)`,
    { details: { foreign: names } },
  );
