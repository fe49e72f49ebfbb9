import { AppError, type Program } from '@skerry/protocol';
import { type Kysely, sql } from 'kysely';
import type { Schema } from '../../store/schema.ts';
import { withTimeLimit } from '../lists/time-limit.ts';
import { type Hold, readWeighed } from '../lists/weight.ts';

/** What says which nodes can run a program. */
export interface RunnableProgram {
  readonly programHash: string;
  readonly program: Pick<Program, 'runtime'>;
}

export interface StoredProgram extends RunnableProgram {
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

/**
 * The first programs in force that ask to be run when messages come, newest first unless told otherwise. Throws LIST_TOO_COSTLY, and
 * what `hold` throws.
 */
export const listTriggered = (db: Kysely<Schema>, oldestFirst: boolean, hold: Hold): Promise<Triggered[]> =>
  withTimeLimit(db, (on) => {
    const direction = oldestFirst ? sql`asc` : sql`desc`;
    const from = sql`(
      select p.created, m.item_hash, m.content -> 'on' -> 'message' as filters
      from programs p join messages m on m.item_hash = p.program_hash
      where jsonb_typeof(m.content -> 'on' -> 'message') = 'array'
      order by p.created ${direction}, m.item_hash limit ${TRIGGERED_MAX}) t`;
    return readWeighed<Triggered>(on, {
      ...{ columns: sql`t.item_hash as "itemHash", t.filters`, from, hold },
      order: sql`order by t.created ${direction}, t.item_hash`,
      ...{ bytes: sql`octet_length(t.filters::text)`, of: 'filters' },
    });
  });

/** Programs that run without being called; those beyond it wait until others are forgotten. */
const STANDING_MAX = 1_000;
/** Text of the filters of one of them. Of one with more there are none: a thousand are read again and again. */
const FILTERS_BYTES_MAX = 16 * 1024;

/** A program in force that runs without being called: it is persistent, or asks to be run when messages come. */
export interface StandingProgram extends RunnableProgram {
  readonly isPersistent: boolean;
  /** As its message has them. */
  readonly filters: readonly unknown[];
}

/** The first ones, oldest first, without what only their runs need: their code is part of many. */
export const listStanding = (db: Kysely<Schema>): Promise<StandingProgram[]> =>
  withTimeLimit(db, async (on) => {
    const { rows } = await sql<StandingProgram>`
      select "programHash", jsonb_build_object('runtime', runtime) as program, "isPersistent",
        case when jsonb_typeof(filters) = 'array' and octet_length(filters::text) <= ${FILTERS_BYTES_MAX}
          then filters else '[]' end as filters
      from (
        select p.created, p.program_hash as "programHash", p.content -> 'runtime' as runtime,
          m.content -> 'on' -> 'persistent' is not distinct from 'true'::jsonb as "isPersistent",
          m.content -> 'on' -> 'message' as filters
        from programs p join messages m on m.item_hash = p.program_hash
        where m.content -> 'on' -> 'persistent' = 'true'::jsonb
          or jsonb_typeof(m.content -> 'on' -> 'message') = 'array'
        order by p.created, m.item_hash limit ${STANDING_MAX}) t
      order by created, "programHash"`.execute(on);
    return rows;
  });
