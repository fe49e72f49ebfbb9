import type { Kysely } from 'kysely';
import { sql } from 'kysely';
import {
  type LABELLED,
  type MessageFilter,
  PROPERTIES,
} from '../../services/core/src/state/lists/properties.ts';
import type { Schema } from '../../services/core/src/store/schema.ts';
import { type DataSet, ENDED_APP, ENDED_TAG, hashOf } from '../data-set/data-set.ts';

/** One value of one filter. */
export interface Value {
  /** Such as "tags heavy". */
  readonly name: string;
  readonly filter: MessageFilter;
}

export interface Property {
  readonly name: string;
  readonly values: readonly Value[];
}

/** Messages of a medium value, as a part of all; and of a light one. */
const MEDIUM_PART = 1 / 1_000;
const LIGHT_MESSAGES = 30;

/** The most used value, one of medium use, and one that few messages have. */
async function pickLabels(db: Kysely<Schema>, letter: string, count: number): Promise<string[]> {
  const near = async (messages: number) => {
    const { rows } = await sql<{ a: string }>`
      select a from totals where b = '' and starts_with(a, ${`${letter}:`}) and total > 0
      order by abs(ln(total) - ln(${messages}::float8)), a limit 1`.execute(db);
    return rows[0]!.a.slice(2);
  };
  return [await near(count), await near(Math.max(100, count * MEDIUM_PART)), await near(LIGHT_MESSAGES)];
}

const NAMES = ['heavy', 'medium', 'light'];

async function listLabelled(
  db: Kysely<Schema>,
  name: string,
  property: (typeof LABELLED)[number]['name'],
  count: number,
  extra: readonly (readonly [name: string, value: string])[] = [],
): Promise<Property> {
  const labels = await pickLabels(db, PROPERTIES[property].letter, count);
  const all = [...labels.map((value, index) => [NAMES[index]!, value] as const), ...extra];
  return {
    name,
    values: all.map(([size, value]) => ({ name: `${name} ${size}`, filter: { [property]: [value] } })),
  };
}

/** Paths that many, some and few messages have. */
async function listKeys(db: Kysely<Schema>): Promise<Property> {
  const { rows } = await sql<{ path: string; total: number }>`
    select path, sum(t.total)::bigint as total
    from shapes s cross join unnest(s.paths) as path join totals t on t.a = 'k:' || s.id and t.b = ''
    where path like '.content.%' group by path order by 2 desc, 1`.execute(db);
  const picked = [rows[0]!, rows[Math.floor(rows.length / 100)]!, rows.at(-1)!];
  const paths = [
    ...picked.map((row, index) => [NAMES[index]!, row.path] as const),
    ['ended', `.content.f${ENDED_APP}`],
  ];
  return {
    name: 'content.keys',
    values: paths.map(([size, path]) => ({ name: `content.keys ${size}`, filter: { keys: [path!] } })),
  };
}

/** Every documented filter of GET /messages, with values of all sizes. */
export async function listProperties(db: Kysely<Schema>, set: DataSet): Promise<Property[]> {
  const { count, dice } = set;
  const some = (number: number) =>
    Array.from({ length: number }, (_, index) => hashOf(dice, Math.floor(((index + 0.5) * count) / number)));
  return [
    {
      name: 'hashes',
      values: [200, 20, 1].map((number, index) => ({
        name: `hashes ${NAMES[index]}`,
        filter: { hashes: some(number) },
      })),
    },
    await listLabelled(db, 'addresses', 'addresses', count),
    await listLabelled(db, 'channels', 'channels', count),
    await listLabelled(db, 'tags', 'tags', count, [['ended', ENDED_TAG]]),
    await listLabelled(db, 'types', 'types', count),
    await listKeys(db),
  ];
}

export async function listContentTypes(db: Kysely<Schema>, count: number): Promise<Property> {
  return listLabelled(db, 'content_types', 'contentTypes', count);
}

/** Each property alone, and each pair of two, with all of their values. */
export function combine(properties: readonly Property[]): Property[] {
  return properties.flatMap((one, index) => [
    one,
    ...properties.slice(index + 1).map((other) => ({
      name: `${one.name} + ${other.name}`,
      values: one.values.flatMap((a) =>
        other.values.map((b) => ({ name: `${a.name}, ${b.name}`, filter: { ...a.filter, ...b.filter } })),
      ),
    })),
  ]);
}

/** Three properties at a time, by their values that many messages have. */
export function combineThree(properties: readonly Property[]): Property[] {
  const large = properties.map(({ name, values }) => ({
    name,
    values: values.filter((value) => /heavy|ended/.test(value.name)),
  }));
  return large.flatMap((a, i) =>
    large.slice(i + 1).flatMap((b, j) =>
      large.slice(i + j + 2).map((c) => ({
        name: `${a.name} + ${b.name} + ${c.name}`,
        values: combine([a, b])
          .at(1)!
          .values.flatMap((x) =>
            c.values.map((y) => ({
              name: `${x.name}, ${y.name}`,
              filter: { ...x.filter, ...y.filter },
            })),
          ),
      })),
    ),
  );
}
