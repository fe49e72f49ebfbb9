import { prepared } from '@skerry/database';
import { type Kysely, sql } from 'kysely';
import { spelledOwner } from '../messages/spelling.ts';
import type { Schema } from '../schema.ts';

/** The file that a STORE message, or a name, stands for now. */
export interface FileReference {
  readonly ref: string;
  readonly owner: string;
  readonly fileHash: string;
  readonly sizeBytes: number;
}

const columns = sql`${spelledOwner('m')} as owner, m.subject as "fileHash", f.size_bytes as "sizeBytes"`;
const inForce = sql`m.type = 'STORE' and m.status = 'processed'`;

type Row = Omit<FileReference, 'ref'>;

export async function findFileOfMessage(
  db: Kysely<Schema>,
  hash: string,
): Promise<FileReference | undefined> {
  const { rows } = await sql<Row>`
    select ${columns} from messages m join files f on f.hash = m.subject
    where m.item_hash = ${hash} and ${inForce}`.execute(db);
  return rows[0] && { ref: hash, ...rows[0] };
}

/**
 * The newest version of the file that a STORE message began: of its owner's STORE messages that name it, and itself,
 * the greatest by (time, hash).
 */
export async function findFileByMessageRef(
  db: Kysely<Schema>,
  ref: string,
): Promise<FileReference | undefined> {
  const { rows } = await sql<Row>`
    select ${columns} from messages first
    join lateral (
      select m.* from messages m where ${inForce} and m.owner = first.owner
        and (m.item_hash = first.item_hash or m.content ->> 'ref' = first.item_hash)
      order by m."time" desc, m.item_hash desc limit 1) m on true
    join files f on f.hash = m.subject
    where first.item_hash = ${ref} and first.type = 'STORE' and first.status = 'processed'`.execute(db);
  return rows[0] && { ref, ...rows[0] };
}

/** The newest file that an owner gave this name. */
export async function findFileByName(
  db: Kysely<Schema>,
  owner: string,
  name: string,
): Promise<FileReference | undefined> {
  const { rows } = await sql<Row>`
    select ${columns} from messages m join files f on f.hash = m.subject
    where ${inForce} and m.owner = ${owner} and m.content ->> 'ref' = ${name}
    order by m."time" desc, m.item_hash desc limit 1`.execute(db);
  return rows[0] && { ref: `${owner}/${name}`, ...rows[0] };
}

/** Of more, the oldest are not looked for: anybody may keep a file by any number of messages. */
const PINS_LOOKED_AT = 100;

/** STORE messages in force of a file, the oldest first. */
export async function listMessagesOfFile(db: Kysely<Schema>, hash: string, limit: number): Promise<string[]> {
  const { rows } = await sql<{ item_hash: string }>`${prepared()}
    select m.item_hash
    from (
      select message_hash from file_pins where file_hash = ${hash} and file_hash <> message_hash
      order by message_hash limit ${sql.lit(PINS_LOOKED_AT)}) p
    join messages m on m.item_hash = p.message_hash
    where ${inForce} order by m."time", m.item_hash limit ${limit}`.execute(db);
  return rows.map((row) => row.item_hash);
}

/** How many messages keep a file. */
export async function countPins(db: Kysely<Schema>, hash: string): Promise<number> {
  const { rows } = await sql<{ total: number }>`
    select count(*) as total from file_pins where file_hash = ${hash}`.execute(db);
  return rows[0]!.total;
}

/** Bytes of a file that is known here, by its own hash. */
export async function findSizeOfFile(db: Kysely<Schema>, hash: string): Promise<number | undefined> {
  const { rows } = await sql<{ size: number }>`
    select size_bytes as size from files where hash = ${hash}`.execute(db);
  return rows[0]?.size;
}
