import { sql } from 'kysely';
import type { StoredMessage } from '../../intake/stored.ts';
import { type MessageFilter, PROPERTY_NAMES, type PropertyName, propertyOf } from './properties.ts';
import { type Condition, rowOf, testOf } from './property.ts';

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
  readonly fits: (row: Row) => boolean;
}

/** What a row is read with for a property that is no column of it. */
function madeFor(name: PropertyName): Condition | undefined {
  const { at, led, column } = propertyOf(name);
  const row = rowOf('m');
  return led ? led.values(row(column)) : at?.(row);
}

/** Where a row has what a property is compared with. */
const columnOf = (name: PropertyName) => (madeFor(name) ? `${name}()` : propertyOf(name).column);

/** Further columns of a message `m`, for the properties that are no columns. */
export const columnsFor = (names: Iterable<PropertyName>): Condition[] =>
  [...names].map((name) => sql`${madeFor(name)!} as ${sql.id(columnOf(name))}`);

export function matcherOf(filter: MessageFilter): Matcher {
  const asked = PROPERTY_NAMES.flatMap((name) => {
    const value = filter[name];
    return value === undefined
      ? []
      : [{ name, column: columnOf(name), value, test: testOf(propertyOf(name), value) }];
  });
  return {
    anchors: asked.flatMap(({ column, value }) =>
      typeof value === 'number' ? [] : [{ column, values: value }],
    ),
    made: asked.flatMap(({ name }) => (madeFor(name) ? [name] : [])),
    fits: (row) => asked.every(({ column, test }) => test(row[column])),
  };
}
