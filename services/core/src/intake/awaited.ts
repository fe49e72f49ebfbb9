import { type Kysely, sql } from 'kysely';
import { fileKey } from '../store/dependency-keys.ts';
import type { Schema } from '../store/schema.ts';
import type { Accepted, Verdict } from './accepted.ts';
import type { UploadedFile } from './effects/files.ts';
import { acceptStored, type StoredMessage } from './stored.ts';
import { foresee, withFile } from './upload-check.ts';

/** Messages that wait for one file and are looked at before it is kept: a file that more wait for is kept. */
const LOOKED = 16;

const noFile = async () => undefined;
const ALONE = { earlier: () => [] };

async function listAwaiting(db: Kysely<Schema>, hash: string, limit: number): Promise<StoredMessage[]> {
  return db
    .selectFrom('dependencies as d')
    .innerJoin('messages as m', 'm.item_hash', 'd.item_hash')
    .selectAll('m')
    .where('d.key', '=', fileKey(hash))
    .where('m.status', '=', 'pending')
    .limit(limit)
    .execute();
}

async function isPinned(db: Kysely<Schema>, hash: string): Promise<boolean> {
  const { rows } = await sql`select from file_pins where file_hash = ${hash} limit 1`.execute(db);
  return rows.length > 0;
}

export interface Refusal {
  readonly accepted: Accepted;
  readonly verdict: Verdict;
}

/**
 * What becomes of the messages that wait for a file that has come, where each of them is refused for want of credit or permission: nobody
 * would pay for the file. Undefined where it is to be kept: somebody has it kept, or waits for it rightly, or for what it says.
 */
export async function findRefusals(
  db: Kysely<Schema>,
  file: UploadedFile,
  now: () => number,
): Promise<Refusal[] | undefined> {
  const rows = await listAwaiting(db, file.hash, LOOKED + 1);
  if (rows.length === 0 || rows.length > LOOKED || (await isPinned(db, file.hash))) return undefined;
  const refusals: Refusal[] = [];
  for (const row of rows) {
    if (row.type !== 'STORE' || row.subject !== file.hash) return undefined;
    const accepted = withFile(await acceptStored(row, noFile), file);
    const verdict = await foresee(db, accepted, ALONE, now);
    if (verdict.status !== 'rejected') return undefined;
    refusals.push({ accepted, verdict });
  }
  return refusals;
}
