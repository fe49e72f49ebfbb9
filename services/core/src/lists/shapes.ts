import { sha256Hex } from '@skerry/protocol';
import { sql, type Transaction } from 'kysely';
import type { Schema } from '../db/schema.ts';
import { shapeOf } from './shape.ts';

/** Shapes that were met lately; applications have few. */
const REMEMBERED_MAX = 20_000;
const remembered = new Map<string, number>();

const digestOf = (paths: readonly string[]) => sha256Hex(JSON.stringify(paths));

/**
 * The number of each content's shape. Shapes are never changed or removed, so one that was read may be remembered; one
 * that this transaction wrote may not, since it may still be undone.
 */
export async function numberShapes(
  trx: Transaction<Schema>,
  contents: readonly Readonly<Record<string, unknown>>[],
): Promise<number[]> {
  const shapes = contents.map((content) => {
    const paths = shapeOf(content);
    return { paths, key: JSON.stringify(paths) };
  });
  const unknown = new Map(
    shapes.filter(({ key }) => !remembered.has(key)).map(({ key, paths }) => [key, paths]),
  );
  const fresh = new Map<string, number>();
  if (unknown.size > 0) {
    const digests = new Map([...unknown].map(([key, paths]) => [digestOf(paths), key]));
    const known = await trx
      .selectFrom('shapes')
      .select(['id', 'digest'])
      .where('digest', 'in', [...digests.keys()])
      .execute();
    if (remembered.size + known.length > REMEMBERED_MAX) remembered.clear();
    for (const { id, digest } of known) {
      fresh.set(digests.get(digest)!, id);
      remembered.set(digests.get(digest)!, id);
      digests.delete(digest);
    }
    if (digests.size > 0) {
      const made = await sql<{ id: number; digest: string }>`
        insert into shapes (digest, paths)
        select digest, array(select jsonb_array_elements_text(paths))
        from unnest(${[...digests.keys()]}::text[], ${[...digests.values()]}::jsonb[]) as made (digest, paths)
        returning id, digest`.execute(trx);
      for (const { id, digest } of made.rows) fresh.set(digests.get(digest)!, id);
    }
  }
  return shapes.map(({ key }) => fresh.get(key) ?? remembered.get(key)!);
}
