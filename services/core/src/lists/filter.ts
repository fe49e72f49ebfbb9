import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { Schema } from '../db/schema.ts';
import type { Property } from './labels.ts';
import { findShapes } from './shapes.ts';

/** Every given property must fit, by any of its values. */
export interface MessageFilter {
  readonly hashes?: readonly string[] | undefined;
  /** Senders. */
  readonly addresses?: readonly string[] | undefined;
  readonly owners?: readonly string[] | undefined;
  readonly channels?: readonly string[] | undefined;
  readonly chains?: readonly string[] | undefined;
  readonly tags?: readonly string[] | undefined;
  readonly types?: readonly string[] | undefined;
  readonly contentTypes?: readonly string[] | undefined;
  /** What the messages speak of (messages/accepted.ts). */
  readonly subjects?: readonly string[] | undefined;
  /** Paths of contents (lists/shape.ts). */
  readonly keys?: readonly string[] | undefined;
  /** Numbers of shapes (lists/shapes.ts). */
  readonly shapes?: readonly number[] | undefined;
  /** Unix seconds, inclusive. */
  readonly from?: number | undefined;
  /** Unix seconds, exclusive. */
  readonly to?: number | undefined;
}

/** Paths that more shapes have are looked for in each message's shape; so nearly all messages of some type have them. */
export const SHAPES_MAX = 5_000;

/** A content type that comes in more shapes is a filter of its own. */
const SHAPES_OF_TYPES_MAX = 64;

/**
 * Says a filter by shapes where that can be said: a shape has one type, one content type and certain paths, so that
 * three properties become one.
 */
export async function resolveFilter(db: Kysely<Schema>, filter: MessageFilter): Promise<MessageFilter> {
  const { keys, types, contentTypes, shapes, addresses, channels, tags } = filter;
  if (shapes) return filter;
  if (keys) {
    const found = await findShapes(db, { paths: keys, types, contentTypes }, SHAPES_MAX);
    return found
      ? { ...filter, keys: undefined, types: undefined, contentTypes: undefined, shapes: found }
      : filter;
  }
  // A content type alone has an index.
  if (!contentTypes || !(addresses || channels || tags)) return filter;
  const found = await findShapes(db, { types, contentTypes }, SHAPES_OF_TYPES_MAX);
  return found ? { ...filter, types: undefined, contentTypes: undefined, shapes: found } : filter;
}

/** A property of which no value is possible, such as a path that no content has. */
export const isEmpty = (filter: MessageFilter) =>
  Object.values(filter).some((values) => Array.isArray(values) && values.length === 0);

export type Condition = RawBuilder<unknown>;
export const allOf = (conditions: readonly Condition[]) => sql.join(conditions, sql` and `);
export const anyOf = (column: string, values: readonly unknown[], type = 'text') =>
  sql`${sql.ref(column)} = any(${values}::${sql.raw(type)}[])`;

/** A property that a list is filtered by and that totals are kept for. */
export interface Given {
  readonly property: Exclude<Property, 'z'>;
  readonly name: 'addresses' | 'types' | 'channels' | 'contentTypes' | 'tags' | 'shapes';
  readonly values: readonly (string | number)[];
}

const PROPERTIES = [
  ['s', 'addresses'],
  ['t', 'types'],
  ['c', 'channels'],
  ['p', 'contentTypes'],
  ['g', 'tags'],
  ['k', 'shapes'],
] as const;

/** The properties of a filter that have labels, each value once. */
export const givenOf = (filter: MessageFilter): Given[] =>
  PROPERTIES.flatMap(([property, name]) => {
    const values = filter[name];
    return values ? [{ property, name, values: [...new Set<string | number>(values)] }] : [];
  });
