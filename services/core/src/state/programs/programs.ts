import { AppError, type Program } from '@skerry/protocol';
import type { Kysely } from 'kysely';
import type { Schema } from '../../store/schema.ts';

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
