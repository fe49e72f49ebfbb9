import type { Kysely } from 'kysely';
import type { Schema } from '../../store/schema.ts';
import { INDEXES, LABELLED, type Letter, type MessageFilter } from './properties.ts';
import { findShapes } from './shapes.ts';

/** Paths that more shapes have are looked for in each message's shape; so nearly all messages of some type have them. */
const SHAPES_MAX = 5_000;

/** A content type that comes in more shapes is a filter of its own. */
const SHAPES_OF_TYPES_MAX = 64;

/** Properties that an index has together with shapes. */
const WITH_SHAPES = INDEXES.flatMap(({ on }) => (on.includes('shapes') ? on : [])).filter(
  (name) => name !== 'shapes',
);

/**
 * Says a filter by shapes where that can be said: a shape has one type, one content type and certain paths, so that
 * three properties become one.
 */
export async function resolveFilter(db: Kysely<Schema>, filter: MessageFilter): Promise<MessageFilter> {
  const { keys, types, contentTypes, shapes } = filter;
  if (shapes) return filter;
  if (keys) {
    const found = await findShapes(db, { paths: keys, types, contentTypes }, SHAPES_MAX);
    return found
      ? { ...filter, keys: undefined, types: undefined, contentTypes: undefined, shapes: found }
      : filter;
  }
  // A content type alone has an index.
  if (!contentTypes || !WITH_SHAPES.some((name) => filter[name])) return filter;
  const found = await findShapes(db, { types, contentTypes }, SHAPES_OF_TYPES_MAX);
  return found ? { ...filter, types: undefined, contentTypes: undefined, shapes: found } : filter;
}

/** A property of which no value is possible, such as a path that no content has. */
export const isEmpty = (filter: MessageFilter) =>
  Object.values(filter).some((values) => Array.isArray(values) && values.length === 0);

/** A property that a list is filtered by and that totals are kept for. */
export interface Given {
  readonly name: (typeof LABELLED)[number]['name'];
  readonly letter: Letter;
  /** Whether a message may have several of the values. */
  readonly many: boolean;
  readonly values: readonly (string | number)[];
}

/** The properties of a filter that have labels, each value once. */
export const givenOf = (filter: MessageFilter): Given[] =>
  LABELLED.flatMap(({ name, letter, many = false }) => {
    const values = filter[name];
    return values ? [{ name, letter, many, values: [...new Set<string | number>(values)] }] : [];
  });
