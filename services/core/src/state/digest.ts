import { type Kysely, type RawBuilder, sql } from 'kysely';
import { EFFECTS } from '../intake/kinds.ts';
import { TRUST_MARK } from '../peers/trust/store.ts';
import type { Schema } from '../store/schema.ts';
import { MESSAGES } from './message-set.ts';

export interface SetDigest {
  readonly count: number;
  /** 64 hexadecimal digits. */
  readonly digest: string;
}

export interface StateDigest {
  /** Events up to here are in it. */
  readonly cursor: string;
  /** The messages in force and the forgotten ones, by hash and status. */
  readonly messages: SetDigest;
  /** What follows from them, as it is kept. Equal messages must give equal parts. */
  readonly derived: Readonly<Record<string, SetDigest>>;
}

/** Part -> the rows that it is the sum of. */
const DERIVED = Map.groupBy(
  EFFECTS.flatMap(({ compared }) => compared ?? []),
  ({ part }) => part,
);

/** Four numbers of 60 bits of each row's SHA-256, summed: the same for the same rows in any order, at constant memory. */
const LIMBS = [0, 1, 2, 3];
const LIMB_BITS = 60n;
const limbOf = (index: number) =>
  sql`coalesce(sum(('x' || substr(h, ${sql.lit(index * 15 + 1)}, 15))::bit(60)::bigint::numeric), 0)::text`;

async function digestRows(db: Kysely<Schema>, rows: RawBuilder<unknown>): Promise<SetDigest> {
  const found = await sql<{ count: number; limbs: string[] }>`
    select count(*) as count, array[${sql.join(LIMBS.map(limbOf))}] as limbs
    from (select encode(sha256(convert_to(r, 'UTF8')), 'hex') as h from (${rows}) rows) hashed`.execute(db);
  const { count, limbs } = found.rows[0]!;
  const words = limbs.map((limb) => (BigInt(limb) & ((1n << LIMB_BITS) - 1n)).toString(16).padStart(15, '0'));
  return { count, digest: words.join('').padStart(64, '0') };
}

/** Changes whenever the digest does: not every step of a message is an event, nor is what is derived again for others. */
export async function readMark(db: Kysely<Schema>): Promise<string> {
  const { rows } = await sql<{ mark: string }>`
    select concat_ws(' ', (select last_seq from event_counter), (select sum from digests where name = ${MESSAGES}),
      ${TRUST_MARK}) as mark`.execute(db);
  return rows[0]!.mark;
}

/** One look at everything: reads each derived table once. */
export function digestState(db: Kysely<Schema>): Promise<StateDigest> {
  return db
    .transaction()
    .setIsolationLevel('repeatable read')
    .setAccessMode('read only')
    .execute(async (trx) => {
      const counter = await trx.selectFrom('event_counter').select('last_seq').executeTakeFirstOrThrow();
      const sum = await trx.selectFrom('digests').selectAll().where('name', '=', MESSAGES).executeTakeFirst();
      const derived: Record<string, SetDigest> = {};
      for (const [part, compared] of DERIVED) {
        const rows = sql.join(
          compared.map((one) => one.rows),
          sql` union all `,
        );
        derived[part] = await digestRows(trx, rows);
      }
      return {
        cursor: String(counter.last_seq),
        messages: { count: sum?.count ?? 0, digest: sum?.sum ?? '0'.repeat(64) },
        derived,
      };
    });
}
