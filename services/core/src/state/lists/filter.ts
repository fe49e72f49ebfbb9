import { aggregateSubject, type MessageStatus } from '@skerry/protocol';
import type { Kysely } from 'kysely';
import type { Schema } from '../../store/schema.ts';
import { INDEXES, LABELLED, type Letter, type MessageFilter } from './properties.ts';
import { findShapes } from './shapes.ts';

/** Paths that more shapes have are looked for in each message's shape; so nearly all messages of some type have them. */
const SHAPES_MAX = 5_000;

const MESSAGE_STATUSES: readonly string[] = [
  'processed',
  'pending',
  'rejected',
  'forgotten',
] satisfies MessageStatus[];
/** Types whose contents say how they are paid. */
const PAID_TYPES = ['STORE', 'PROGRAM', 'INSTANCE'];

/** A content type that comes in more shapes is a filter of its own. */
const SHAPES_OF_TYPES_MAX = 64;

/** Properties that an index has together with shapes. */
const WITH_SHAPES = INDEXES.flatMap(({ on }) => (on.includes('shapes') ? on : [])).filter(
  (name) => name !== 'shapes',
);

/** Aggregates with a key, as far as their elements are looked up by what they speak of. */
const SUBJECTS_MAX = 1_000;

const both = (some: readonly string[] | undefined, others: readonly string[]) =>
  some ? others.filter((one) => some.includes(one)) : others;

/** What the elements of aggregates with one of the keys speak of; undefined: too much. */
async function listSubjects(
  db: Kysely<Schema>,
  { owners, aggregateKeys: keys = [] }: MessageFilter,
): Promise<string[] | undefined> {
  if (owners)
    return owners.length * keys.length <= SUBJECTS_MAX
      ? owners.flatMap((owner) => keys.map((key) => aggregateSubject(owner, key)))
      : undefined;
  const rows = await db
    .selectFrom('aggregates')
    .select(['owner', 'key'])
    .where('key', 'in', keys)
    .limit(SUBJECTS_MAX + 1)
    .execute();
  return rows.length > SUBJECTS_MAX ? undefined : rows.map(({ owner, key }) => aggregateSubject(owner, key));
}

/** Says by types and subjects what they can say: those have indexes. */
async function bySubject(db: Kysely<Schema>, filter: MessageFilter): Promise<MessageFilter> {
  const { types, subjects, fileHashes, aggregateKeys, paymentTypes } = filter;
  if (fileHashes) {
    const narrowed = { types: both(types, ['STORE']), subjects: both(subjects, fileHashes) };
    return bySubject(db, { ...filter, fileHashes: undefined, ...narrowed });
  }
  const elements = aggregateKeys && (await listSubjects(db, filter));
  if (elements) {
    const narrowed = { types: both(types, ['AGGREGATE']), subjects: both(subjects, elements) };
    return bySubject(db, { ...filter, aggregateKeys: undefined, ...narrowed });
  }
  return paymentTypes ? { ...filter, types: both(types, PAID_TYPES) } : filter;
}

/** Statuses that some message has here; all in force is what lists are of anyway. */
function withStatuses(filter: MessageFilter): MessageFilter {
  const statuses = filter.statuses?.filter((one) => MESSAGE_STATUSES.includes(one));
  return { ...filter, statuses: statuses?.join() === 'processed' ? undefined : statuses };
}

/**
 * Says a filter by shapes where that can be said: a shape has one type, one content type and certain paths, so that
 * three properties become one.
 */
async function byShape(db: Kysely<Schema>, filter: MessageFilter): Promise<MessageFilter> {
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

/** The same filter, said by what has indexes. */
export async function resolveFilter(db: Kysely<Schema>, asked: MessageFilter): Promise<MessageFilter> {
  const filter = withStatuses(asked);
  // What follows is known of messages in force alone.
  if (filter.statuses) return filter;
  const narrowed = await bySubject(db, filter);
  return isEmpty(narrowed) ? narrowed : byShape(db, narrowed);
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
