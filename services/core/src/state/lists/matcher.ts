import { type Kysely, sql } from 'kysely';
import type { StoredMessage } from '../../intake/stored.ts';
import type { Schema } from '../../store/schema.ts';
import { type MessageFilter, PROPERTY_NAMES, type PropertyName, propertyOf } from './properties.ts';
import { allOf, type Condition, conditionOf, rowOf, testOf } from './property.ts';

/** A message with what the database made of it for some properties (`columnsFor`). */
export type Row = StoredMessage & Readonly<Record<string, unknown>>;

/** A property of which a message has one of the values, or it does not fit. */
export interface Anchor {
  /** Where a row has it. */
  readonly column: string;
  readonly values: readonly (string | number)[];
}

/** A filter for messages that come one by one: the same that lists are read by. */
export interface Matcher {
  readonly anchors: readonly Anchor[];
  /** Properties that rows must be read with. */
  readonly made: readonly PropertyName[];
  /** As far as a row tells. */
  readonly fits: (row: Row) => boolean;
  /** What only the database can say beside it (`listFitting`). */
  readonly rest: MessageFilter | undefined;
}

/** Where a row has what a property is compared with. */
const columnOf = (name: PropertyName) => (propertyOf(name).at ? `${name}()` : propertyOf(name).column);

/** Further columns of a message `m`, for the properties that are no columns. */
export const columnsFor = (names: Iterable<PropertyName>): Condition[] =>
  [...names].map((name) => sql`${propertyOf(name).at!(rowOf('m'))} as ${sql.id(columnOf(name))}`);

export function matcherOf(filter: MessageFilter): Matcher {
  const asked = PROPERTY_NAMES.flatMap((name) => {
    const value = filter[name];
    return value === undefined
      ? []
      : [{ name, column: columnOf(name), value, test: testOf(propertyOf(name), value) }];
  });
  const told = asked.filter(({ test }) => test);
  const rest = asked.filter(({ test }) => !test);
  return {
    anchors: told.flatMap(({ column, value }) =>
      typeof value === 'number' ? [] : [{ column, values: value }],
    ),
    made: told.flatMap(({ name }) => (propertyOf(name).at ? [name] : [])),
    fits: (row) => told.every(({ column, test }) => test!(row[column])),
    rest:
      rest.length === 0
        ? undefined
        : (Object.fromEntries(rest.map(({ name, value }) => [name, value])) as MessageFilter),
  };
}

/** Which of the messages fit a filter. */
export async function listFitting(
  db: Kysely<Schema>,
  filter: MessageFilter,
  hashes: readonly string[],
): Promise<ReadonlySet<string>> {
  const conditions = PROPERTY_NAMES.flatMap((name) => {
    const value = filter[name];
    const property = propertyOf(name);
    return value === undefined ? [] : [conditionOf(property, 'm', property.column, value)];
  });
  const { rows } = await sql<{ item_hash: string }>`
    select m.item_hash from messages m
    where m.item_hash = any(${hashes}::text[]) and ${allOf(conditions)}`.execute(db);
  return new Set(rows.map((row) => row.item_hash));
}
