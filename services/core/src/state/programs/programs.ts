import { AppError, type Program } from '@skerry/protocol';
import { type Kysely, sql } from 'kysely';
import type { Schema } from '../../store/schema.ts';
import { withTimeLimit } from '../lists/time-limit.ts';

export interface StoredProgram {
  readonly programHash: string;
  readonly owner: string;
  readonly program: Program;
}

/** Throws PROGRAM_NOT_FOUND. */
export async function getProgram(db: Kysely<Schema>, programHash: string): Promise<StoredProgram> {
  const row = await db
    .selectFrom('programs')
    .selectAll()
    .where('program_hash', '=', programHash)
    .executeTakeFirst();
  if (!row) throw new AppError('PROGRAM_NOT_FOUND', `there is no program ${programHash} here`);
  return { programHash, owner: row.owner, program: row.content };
}

/** Programs of one answer. */
const TRIGGERED_MAX = 1_000;

interface Triggered {
  readonly itemHash: string;
  /** As its message has them. */
  readonly filters: readonly unknown[];
}

/** The first programs in force that ask to be run when messages come, newest first unless told otherwise. */
export const listTriggered = (db: Kysely<Schema>, oldestFirst: boolean): Promise<Triggered[]> =>
  withTimeLimit(db, async (on) => {
    const direction = oldestFirst ? sql`asc` : sql`desc`;
    const { rows } = await sql<Triggered>`
      select m.item_hash as "itemHash", m.content -> 'on' -> 'message' as filters
      from programs p join messages m on m.item_hash = p.program_hash
      where jsonb_typeof(m.content -> 'on' -> 'message') = 'array'
      order by p.created ${direction}, m.item_hash limit ${TRIGGERED_MAX}`.execute(on);
    return rows;
  });
