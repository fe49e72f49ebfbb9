import { AppError, type Program } from '@skerry/protocol';
import { type Kysely, sql } from 'kysely';
import type { Schema } from '../../store/schema.ts';
import { withTimeLimit } from '../lists/time-limit.ts';
import { type Hold, readWeighed } from '../lists/weight.ts';
import type { Standing } from './standing.ts';

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
  readonly filters: Standing['filters'];
}

/**
 * The first programs in force that ask to be run when messages come, newest first unless told otherwise. Throws LIST_TOO_COSTLY, and
 * what `hold` throws.
 */
export const listTriggered = (db: Kysely<Schema>, oldestFirst: boolean, hold: Hold): Promise<Triggered[]> =>
  withTimeLimit(db, (on) => {
    const direction = oldestFirst ? sql`asc` : sql`desc`;
    const from = sql`(
      select created, program_hash, standing -> 'filters' as filters from programs
      where standing is not null and (standing ->> 'isTriggered')::boolean
      order by created ${direction}, program_hash limit ${TRIGGERED_MAX}) t`;
    return readWeighed<Triggered>(on, {
      ...{ columns: sql`t.program_hash as "itemHash", t.filters`, from, hold },
      order: sql`order by t.created ${direction}, t.program_hash`,
      ...{ bytes: sql`octet_length(t.filters::text)`, of: 'filters' },
    });
  });

/** Programs that run without being called; those beyond it wait until others are forgotten. */
const STANDING_MAX = 1_000;
/** Of them an owner has so many by age alone: whoever comes later, with however many keys, takes none of these. */
const STANDING_OF_OWNER = 10;

/** A program in force that runs without being called. */
export interface StandingProgram extends RunnableProgram {
  readonly isPersistent: boolean;
  readonly filters: Standing['filters'];
}

/**
 * The first ones, oldest first: of each owner a few, the oldest of all first, then of each one more, so that nobody's many keep
 * another's from running. How old they are is no word of their senders.
 */
export const listStanding = (db: Kysely<Schema>): Promise<StandingProgram[]> =>
  withTimeLimit(db, async (on) => {
    const { rows } = await sql<{ programHash: string; standing: Standing }>`
      select p.program_hash as "programHash", p.standing
      from (
        select program_hash, effective
        from (
          select program_hash, effective, row_number() over (partition by owner order by effective, program_hash) as turn
          from programs where standing is not null) n
        order by greatest(turn - ${STANDING_OF_OWNER}, 0), effective, program_hash limit ${STANDING_MAX}) t
      join programs p using (program_hash)
      order by t.effective, "programHash"`.execute(on);
    return rows.map(({ programHash, standing: { runtime, isPersistent, filters } }) => ({
      ...{ programHash, program: { runtime }, isPersistent, filters },
    }));
  });
