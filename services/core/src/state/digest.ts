import {
  type DerivedDigests,
  type DerivedKind,
  instanceElement,
  instanceViewOf,
  type SetDigest,
  SetSum,
} from '@skerry/protocol';
import { type Kysely, type RawBuilder, sql, type Transaction } from 'kysely';
import { EFFECTS } from '../intake/kinds.ts';
import { TRUST_MARK } from '../peers/trust/store.ts';
import { MESSAGES } from '../store/message-set.ts';
import type { Schema } from '../store/schema.ts';
import { ELEMENTS } from './derived-elements.ts';
import { stateOf } from './instances/rows.ts';

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

/** Eight numbers of 32 bits of each row's SHA-256: their sums make the sum of all (SetSum), at constant memory. */
const LIMB_BITS = 32;
const LIMB_DIGITS = LIMB_BITS / 4;
const LIMBS = Array.from({ length: 256 / LIMB_BITS }, (_, at) => at);
const limbOf = (at: number) =>
  sql`coalesce(sum(('x' || substr(h, ${sql.lit(at * LIMB_DIGITS + 1)}, ${sql.lit(LIMB_DIGITS)}))::bit(32)::bigint), 0)::text`;

/** The digest of rows, each a text `r`. */
async function digestRows(db: Kysely<Schema>, rows: RawBuilder<unknown>): Promise<SetDigest> {
  const found = await sql<{ count: number; limbs: string[] }>`
    select count(*) as count, array[${sql.join(LIMBS.map(limbOf))}] as limbs
    from (select encode(sha256(convert_to(r, 'UTF8')), 'hex') as h from (${rows}) rows) hashed`.execute(db);
  const { count, limbs } = found.rows[0]!;
  const sum = limbs.reduce((total, limb) => (total << BigInt(LIMB_BITS)) + BigInt(limb), 0n);
  return { count, digest: BigInt.asUintN(256, sum).toString(16).padStart(64, '0') };
}

/** Changes whenever the digest does: not every step of a message is an event, nor is what is derived again for others. */
export async function readMark(db: Kysely<Schema>): Promise<string> {
  const { rows } = await sql<{ mark: string }>`
    select concat_ws(' ', (select last_seq from event_counter), (select sum from digests where name = ${MESSAGES}),
      ${TRUST_MARK}) as mark`.execute(db);
  return rows[0]!.mark;
}

/** What is read of one moment, and the cursor of that moment. */
function readAt<T extends object>(
  db: Kysely<Schema>,
  read: (trx: Transaction<Schema>) => Promise<T>,
): Promise<T & Pick<StateDigest, 'cursor'>> {
  return db
    .transaction()
    .setIsolationLevel('repeatable read')
    .setAccessMode('read only')
    .execute(async (trx) => {
      const counter = await trx.selectFrom('event_counter').select('last_seq').executeTakeFirstOrThrow();
      return { cursor: String(counter.last_seq), ...(await read(trx)) };
    });
}

async function readMessages(trx: Transaction<Schema>): Promise<SetDigest> {
  const { count, sum } = await trx
    .selectFrom('digests')
    .selectAll()
    .where('name', '=', MESSAGES)
    .executeTakeFirstOrThrow();
  return { count, digest: sum };
}

/** One look at everything: reads each derived table once. */
export const digestState = (db: Kysely<Schema>): Promise<StateDigest> =>
  readAt(db, async (trx) => {
    const derived: Record<string, SetDigest> = {};
    for (const [part, compared] of DERIVED) {
      const rows = sql.join(
        compared.map((one) => one.rows),
        sql` union all `,
      );
      derived[part] = await digestRows(trx, rows);
    }
    return { messages: await readMessages(trx), derived };
  });

/** The digest of a set, and the events that are in it. */
export type DigestAt = SetDigest & Pick<StateDigest, 'cursor'>;

/** The digest of all messages alone: it is kept, and costs nothing. */
export const digestMessages = (db: Kysely<Schema>): Promise<DigestAt> => readAt(db, readMessages);

/** Instances that are read at once: between them others have their turn. */
const INSTANCES_AT_ONCE = 500;

/** A digest of all instances that whoever has their messages can compute as well. */
export const digestInstances = (db: Kysely<Schema>): Promise<DigestAt> =>
  readAt(db, async (trx) => {
    const sum = new SetSum();
    for (let after = ''; ; ) {
      const rows = await trx
        .selectFrom('instances')
        .selectAll()
        .where('instance_id', '>', after)
        .orderBy('instance_id')
        .limit(INSTANCES_AT_ONCE)
        .execute();
      for (const row of rows) sum.add(instanceElement(instanceViewOf(stateOf(row))));
      if (rows.length < INSTANCES_AT_ONCE) return sum.digest();
      after = rows.at(-1)!.instance_id;
    }
  });

export type DerivedDigestsAt = Pick<StateDigest, 'cursor'> & { readonly kinds: DerivedDigests };

/** Digests of derived state that whoever has the messages can compute as well. Reads every message in force once. */
export const digestDerived = (db: Kysely<Schema>): Promise<DerivedDigestsAt> =>
  readAt(db, async (trx) => {
    const read = (kind: DerivedKind) => digestRows(trx, ELEMENTS[kind]);
    return {
      kinds: {
        posts: await read('posts'),
        aggregates: await read('aggregates'),
        credits: await read('credits'),
        files: await read('files'),
        measurements: await read('measurements'),
        programs: await read('programs'),
      },
    };
  });
