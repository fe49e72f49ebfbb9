import type { Page } from '@skerry/database';
import { type Kysely, sql } from 'kysely';
import type { Schema } from '../../store/schema.ts';
import { withTimeLimit } from '../lists/time-limit.ts';

interface OwnedFile {
  readonly fileHash: string;
  readonly sizeBytes: number;
  /** Unix seconds of the message. */
  readonly time: number;
  /** The STORE message. */
  readonly itemHash: string;
}

interface OwnedFiles {
  readonly files: OwnedFile[];
  /** Of all of them, beyond the page. */
  readonly total: number;
  readonly totalBytes: number;
}

/** The files that an owner's STORE messages in force keep, newest first unless told otherwise. Throws LIST_TOO_COSTLY. */
export function listFilesOf(
  db: Kysely<Schema>,
  owner: string,
  fileHash: string | undefined,
  { limit, offset, oldestFirst }: Page & { readonly oldestFirst: boolean },
): Promise<OwnedFiles> {
  const direction = oldestFirst ? sql`asc` : sql`desc`;
  const found = sql`file_pins p join files f on f.hash = p.file_hash join messages m on m.item_hash = p.message_hash
    where p.owner = ${owner} and m.type = 'STORE' and m.status = 'processed' and p.file_hash <> p.message_hash
    ${fileHash === undefined ? sql`` : sql`and p.file_hash = ${fileHash}`}`;
  return withTimeLimit(db, async (on) => {
    const { rows: files } = await sql<OwnedFile>`
      select p.file_hash as "fileHash", f.size_bytes as "sizeBytes", m."time", m.item_hash as "itemHash" from ${found}
      order by m."time" ${direction}, m.item_hash limit ${limit} offset ${offset}`.execute(on);
    const { rows } = await sql<{ total: number; bytes: number }>`
      select count(*) as total, coalesce(sum(f.size_bytes), 0)::bigint as bytes from ${found}`.execute(on);
    return { files, total: rows[0]!.total, totalBytes: rows[0]!.bytes };
  });
}
