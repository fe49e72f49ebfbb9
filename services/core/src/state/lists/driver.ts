import { sql } from 'kysely';
import {
  INDEXES,
  type Index,
  type ListColumn,
  type MessageFilter,
  PROPERTY_NAMES,
  type PropertyName,
  propertyOf,
  TAG_COLUMNS,
} from './properties.ts';
import { allOf, anyOf, type Condition, conditionOf } from './property.ts';

/**
 * One short index scan for each combination of values, merged by time. An index whose first columns are those of the
 * combination gives its messages in order of time, so each scan ends after a page, however many messages fit.
 */
export interface Driver {
  readonly table: 'messages' | 'message_tags';
  /** undefined: the primary key, or the planner's choice. */
  readonly index: string | undefined;
  /** The filtered properties with labels that the index answers. */
  readonly answers: readonly PropertyName[];
  /** Whether the index tells without the row which messages fit. */
  readonly isCovering?: boolean;
  /** In the index's order. */
  readonly prefix: readonly Prefix[];
  /** A condition of the index beside those on its columns. */
  readonly also?: Condition;
  /** Messages that are not in force; else those that are. */
  readonly isUnlisted?: true;
}

/** A column of an index, and the values that are looked up in it. */
export interface Prefix {
  readonly property: PropertyName;
  readonly column: ListColumn | 'tag';
  readonly type: 'text' | 'integer';
  readonly values: readonly (string | number)[];
}

/** Combinations that are looked up for one page; beyond it fewer columns are. */
const COMBINATIONS_MAX = 4_000;

function prefixOf(filter: MessageFilter, property: PropertyName): Prefix | undefined {
  const { column, many, type = 'text', all } = propertyOf(property);
  const values = (filter[property] as Prefix['values'] | undefined) ?? all;
  return values && { property, column: many ? 'tag' : column, type, values };
}

/** Every index ends with them. */
const CARRIED_BY_ALL: readonly string[] = ['time', 'item_hash'] satisfies ListColumn[];
/** What each scan of an index of lists is of anyway (usesOf). */
const IN_FORCE: PropertyName = 'statuses';

/** Whether an index has the columns of everything that a filter asks for. */
function isCovering(filter: MessageFilter, { on, carries = [] }: Index): boolean {
  const columns = new Set<string>([...on, ...carries].map((one) => propertyOf(one).column));
  return PROPERTY_NAMES.every((name) => {
    const { column, at } = propertyOf(name);
    if (filter[name] === undefined || name === IN_FORCE) return true;
    return at === undefined && (columns.has(column) || CARRIED_BY_ALL.includes(column));
  });
}

/** undefined: the filter lacks what the index begins with. */
function driverOf(filter: MessageFilter, made: Index): Driver | undefined {
  const { name, on, isShared } = made;
  const prefix = on.map((property) => prefixOf(filter, property)).filter((one) => one !== undefined);
  if (filter[on[0]!] === undefined || prefix.length < on.length) return undefined;
  return {
    table: prefix[0]!.column === 'tag' ? 'message_tags' : 'messages',
    index: isShared ? undefined : name,
    answers: on.filter((one) => filter[one] !== undefined && propertyOf(one).letter !== undefined),
    isCovering: isCovering(filter, made),
    prefix,
  };
}

const BY_TIME: Driver = { table: 'messages', index: 'messages_by_time', answers: [], prefix: [] };

/** The indexes that serve a filter, those that answer more of it first. `type` without a filter: all types are merged. */
export function listDrivers(filter: MessageFilter): Driver[] {
  const byKey = prefixOf(filter, 'hashes');
  if (byKey) return [{ table: 'messages', index: undefined, answers: [], prefix: [byKey] }];
  const drivers = INDEXES.flatMap((index) => driverOf(filter, index) ?? []);
  return drivers.length === 0 ? [BY_TIME] : drivers;
}

/**
 * The scans that give what a driver stands for. Without any other filter, an owner's messages are in two places: those
 * that the owner sent, and the few that others sent in its name.
 */
export function scansOf(filter: MessageFilter, driver: Driver): Driver[] {
  const byOwner = prefixOf(filter, 'owners');
  if (!byOwner || driver.index !== BY_TIME.index) return [driver];
  return [
    ...listDrivers({ addresses: filter.owners }).map((one) => ({ ...one, also: sql`x.owner = x.sender` })),
    {
      table: 'messages',
      index: 'messages_by_owner',
      answers: [],
      prefix: [byOwner],
      also: sql`x.owner <> x.sender`,
    },
  ];
}

/**
 * The scans that give the messages with a `content.ref`: posts by what they speak of, and versions of files, which speak
 * of their file, by an index of their own.
 */
export function scansOfRefs({ refs = [], types, subjects }: MessageFilter): Driver[] {
  const spokenOf = refs.filter((ref) => subjects === undefined || subjects.includes(ref));
  const mayBe = (type: string) => types === undefined || types.includes(type);
  const versions = sql`x.type = 'STORE' and x.content ->> 'ref' = any(${refs}::text[])`;
  return [
    ...(mayBe('POST') ? listDrivers({ subjects: spokenOf, types: ['POST'] }).slice(0, 1) : []),
    ...(mayBe('STORE')
      ? [{ table: 'messages', index: undefined, answers: [], prefix: [], also: versions } as const]
      : []),
  ];
}

/** The scan that gives messages that are not in force. @param statuses other than processed */
export function unlistedDriver(filter: MessageFilter, statuses: readonly string[]): Driver {
  const byKey = prefixOf(filter, 'hashes');
  const own = { table: 'messages', answers: [], isUnlisted: true } as const;
  return byKey
    ? { ...own, index: undefined, prefix: [byKey], also: anyOf('x.status', statuses) }
    : { ...own, index: 'messages_by_status', prefix: [prefixOf({ statuses }, 'statuses')!] };
}

/** The condition that lets an index, and no other, serve a query (migrations/002). */
export const meansIndex = (table: string, index: string): Condition =>
  sql`${sql.ref(`${table}.item_hash`)} <> ${sql.lit(index)}`;

export const countCombinations = (prefix: readonly Prefix[]) =>
  prefix.reduce((count, { values }) => count * values.length, 1);

/** Leaves out the last columns of a driver while there are too many combinations. */
export function narrowDriver(driver: Driver): Driver {
  let { prefix } = driver;
  while (prefix.length > 1 && countCombinations(prefix) > COMBINATIONS_MAX) prefix = prefix.slice(0, -1);
  return { ...driver, prefix };
}

/** The conditions that make a driver's index usable, on `x`. */
export const usesOf = ({ table, index, also, isUnlisted }: Driver): Condition[] => [
  ...(table === 'messages' ? [isUnlisted ? sql`x.status <> 'processed'` : sql`x.status = 'processed'`] : []),
  ...(index === undefined ? [] : [meansIndex('x', index)]),
  ...(also ? [also] : []),
];

/** The conditions that the index does not answer, on `x` (the driver's table) or `m` (messages). */
export function restOf(filter: MessageFilter, driver: Driver): { own: Condition[]; message: Condition[] } {
  const own: Condition[] = [];
  const message: Condition[] = [];
  // Each scan is of messages in force, or of others.
  const answered = new Set<PropertyName>(['statuses', ...driver.prefix.map(({ property }) => property)]);
  for (const name of PROPERTY_NAMES) {
    const value = filter[name];
    if (value === undefined || answered.has(name)) continue;
    const property = propertyOf(name);
    const { column, at } = property;
    const isHere =
      driver.table === 'messages' || (!at && (TAG_COLUMNS as readonly string[]).includes(column));
    const conditions = isHere ? own : message;
    conditions.push(conditionOf(property, isHere ? 'x' : 'm', column, value));
  }
  return { own, message };
}

/** The messages of the rows `x`, where conditions are left that only they answer. */
export const joinOf = (conditions: readonly Condition[]): Condition =>
  conditions.length > 0 ? sql`join messages m on m.item_hash = x.item_hash and ${allOf(conditions)}` : sql``;

/** All rows `x` of a driver that fit, in no order; a message with several of the tags more than once. */
export function rowsOf(filter: MessageFilter, driver: Driver): Condition {
  const rest = restOf(filter, driver);
  const own = [
    ...driver.prefix.map(({ column, values, type }) => anyOf(`x.${column}`, values, type)),
    ...usesOf(driver),
    ...rest.own,
  ];
  return sql`from ${sql.table(driver.table)} x ${joinOf(rest.message)} where ${allOf(own)}`;
}

/** Whether a driver may give a message more than once. */
export const isRepeating = ({ tags }: MessageFilter, { table }: Driver) =>
  table === 'message_tags' && (tags?.length ?? 0) > 1;
