import { sha256Hex } from '@skerry/protocol';
import { type Kysely, sql, type Transaction } from 'kysely';
import type { Schema } from '../../store/schema.ts';

/** Shapes that were met lately; applications have few. */
const REMEMBERED_MAX = 20_000;

interface Remembered {
  readonly timeline: string;
  readonly numbers: Map<string, number>;
}

/** Of each database. */
const rememberedOf = new WeakMap<object, Remembered>();

function recall(trx: Transaction<Schema>, timeline: string): Map<string, number> {
  // One adapter per connected database, whatever transaction runs on it.
  const { adapter } = trx.getExecutor();
  const remembered = rememberedOf.get(adapter);
  if (remembered?.timeline === timeline && remembered.numbers.size <= REMEMBERED_MAX)
    return remembered.numbers;
  const numbers = new Map<string, number>();
  rememberedOf.set(adapter, { timeline, numbers });
  return numbers;
}

/**
 * The number of each shape (`shapeKeyOf`). Shapes are never changed or removed, so one that was read may be remembered; one
 * that this transaction wrote may not, since it may still be undone.
 * @param timeline of the database (`lockWrites`): on another one a number that is remembered may be nobody's, or another shape's
 */
export async function numberShapes(
  trx: Transaction<Schema>,
  keys: readonly string[],
  timeline: string,
): Promise<number[]> {
  const remembered = recall(trx, timeline);
  const fresh = new Map<string, number>();
  const unknown = new Map(
    keys.filter((key) => !remembered.has(key)).map((key) => [sha256Hex(key), key] as const),
  );
  if (unknown.size > 0) {
    const known = await trx
      .selectFrom('shapes')
      .select(['id', 'digest'])
      .where('digest', 'in', [...unknown.keys()])
      .execute();
    for (const { id, digest } of known) {
      remembered.set(unknown.get(digest)!, id);
      unknown.delete(digest);
    }
    for (const [key, id] of await makeShapes(trx, unknown)) fresh.set(key, id);
  }
  return keys.map((key) => fresh.get(key) ?? remembered.get(key)!);
}

/** @param unknown digest -> key */
async function makeShapes(
  trx: Transaction<Schema>,
  unknown: ReadonlyMap<string, string>,
): Promise<[key: string, id: number][]> {
  if (unknown.size === 0) return [];
  const { rows } = await sql<{ id: number; digest: string }>`
    insert into shapes (digest, type, content_type, paths)
    select digest, key ->> 0, key ->> 1, array(select jsonb_array_elements_text(key -> 2))
    from unnest(${[...unknown.keys()]}::text[], ${[...unknown.values()]}::jsonb[]) as made (digest, key)
    returning id, digest`.execute(trx);
  return rows.map(({ id, digest }) => [unknown.get(digest)!, id]);
}

/** The shapes that have one of the paths, one of the types and one of the content types; undefined: beyond `max`. */
export async function findShapes(
  db: Kysely<Schema>,
  asked: {
    readonly paths?: readonly string[] | undefined;
    readonly types?: readonly string[] | undefined;
    readonly contentTypes?: readonly string[] | undefined;
  },
  max: number,
): Promise<number[] | undefined> {
  let query = db.selectFrom('shapes').select('id');
  if (asked.paths) query = query.where(sql<boolean>`paths && ${asked.paths}::text[]`);
  if (asked.types) query = query.where('type', 'in', asked.types);
  if (asked.contentTypes) query = query.where('content_type', 'in', asked.contentTypes);
  const rows = await query.limit(max + 1).execute();
  return rows.length > max ? undefined : rows.map((row) => row.id);
}
