import { sql } from 'kysely';
import { MESSAGE_TYPES } from '../messages/contents.ts';
import { anyOf, type Condition, type MessageFilter } from './filter.ts';
import type { Property } from './labels.ts';

/**
 * One short index scan for each combination of values, merged by time. An index whose first columns are those of the
 * combination gives its messages in order of time, so each scan ends after a page, however many messages fit.
 */
export interface Driver {
  readonly table: 'messages' | 'message_tags';
  /** undefined: the primary key, or the planner's choice. */
  readonly index: string | undefined;
  /** The filtered properties that the index answers. */
  readonly answers: readonly Property[];
  /** Column -> values; in the index's order. */
  readonly prefix: readonly Prefix[];
  /** A condition of the index beside those on its columns. */
  readonly also?: Condition;
}
type Prefix = readonly [column: string, values: readonly unknown[], type?: string];

/** Combinations that are looked up for one page; beyond it fewer columns are. */
const COMBINATIONS_MAX = 4_000;

/** The indexes that serve a filter, those that answer more of it first. `type` without a filter: all types are merged. */
export function listDrivers(filter: MessageFilter): Driver[] {
  const { hashes, tags, addresses, channels, contentTypes, shapes, subjects } = filter;
  if (hashes) return [{ table: 'messages', index: undefined, answers: [], prefix: [['item_hash', hashes]] }];
  const type: Prefix = ['type', filter.types ?? MESSAGE_TYPES];
  const t: Property[] = filter.types ? ['t'] : [];
  const sender: Prefix | undefined = addresses && ['sender', addresses];
  const channel: Prefix | undefined = channels && ['channel', channels];
  const shape: Prefix | undefined = shapes && ['shape', shapes, 'integer'];
  const tag: Prefix | undefined = tags && ['tag', tags];
  const drivers: Driver[] = [];
  const put = (
    index: string | undefined,
    answers: readonly Property[],
    ...columns: readonly (Prefix | undefined)[]
  ) => {
    const prefix = columns.filter((one) => one !== undefined);
    if (prefix.length < columns.length) return;
    drivers.push({ table: prefix[0]?.[0] === 'tag' ? 'message_tags' : 'messages', index, answers, prefix });
  };
  put('message_tags_by_sender', ['g', 's', ...t], tag, sender, type);
  put('message_tags_by_channel', ['g', 'c', ...t], tag, channel, type);
  put('message_tags_by_shape', ['g', 'k'], tag, shape);
  put('messages_by_sender_channel', ['s', 'c', ...t], sender, channel, type);
  put('messages_by_sender_shape', ['s', 'k'], sender, shape);
  put('messages_by_channel_shape', ['c', 'k'], channel, shape);
  put('message_tags_by_tag', ['g', ...t], tag, type);
  // Others than lists use this index, too: it is the planner's to choose.
  put(undefined, [], subjects && ['subject', subjects], type);
  put('messages_by_sender', ['s', ...t], sender, type);
  put('messages_by_content_type', ['p'], contentTypes && ['content_type', contentTypes]);
  put('messages_by_channel', ['c', ...t], channel, type);
  put('messages_by_shape', ['k'], shape);
  if (filter.types) put('messages_by_type', t, type);
  if (drivers.length === 0) put('messages_by_time', []);
  return drivers;
}

/**
 * The scans that give what a driver stands for. Without any other filter, an owner's messages are in two places: those
 * that the owner sent, and the few that others sent in its name.
 */
export function scansOf(filter: MessageFilter, driver: Driver): Driver[] {
  const { owners } = filter;
  if (!owners || driver.index !== 'messages_by_time') return [driver];
  return [
    ...listDrivers({ addresses: owners }).map((one) => ({ ...one, also: sql`x.owner = x.sender` })),
    {
      table: 'messages',
      index: 'messages_by_owner',
      answers: [],
      prefix: [['owner', owners]],
      also: sql`x.owner <> x.sender`,
    },
  ];
}

/** The condition that lets an index, and no other, serve a query (migrations/002). */
export const meansIndex = (table: string, index: string): Condition =>
  sql`${sql.ref(`${table}.item_hash`)} <> ${sql.lit(index)}`;

export const countCombinations = (prefix: readonly Prefix[]) =>
  prefix.reduce((count, [, values]) => count * values.length, 1);

/** Leaves out the last columns of a driver while there are too many combinations. */
export function narrowDriver(driver: Driver): Driver {
  let { prefix } = driver;
  while (prefix.length > 1 && countCombinations(prefix) > COMBINATIONS_MAX) prefix = prefix.slice(0, -1);
  return { ...driver, prefix };
}

const COLUMNS = [
  ['addresses', 'sender'],
  ['owners', 'owner'],
  ['channels', 'channel'],
  ['chains', 'chain'],
  ['types', 'type'],
  ['contentTypes', 'content_type'],
  ['subjects', 'subject'],
] as const;
const TAG_COLUMNS: readonly string[] = ['sender', 'channel', 'type', 'shape', 'time', 'item_hash'];

/** The conditions that make a driver's index usable, on `x`. */
export const usesOf = ({ table, index, also }: Driver): Condition[] => [
  ...(table === 'messages' ? [sql`x.status = 'processed'`] : []),
  ...(index === undefined ? [] : [meansIndex('x', index)]),
  ...(also ? [also] : []),
];

/** The conditions that the index does not answer, on `x` (the driver's table) or `m` (messages). */
export function restOf(filter: MessageFilter, driver: Driver): { own: Condition[]; message: Condition[] } {
  const own: Condition[] = [];
  const message: Condition[] = [];
  const put = (column: string, condition: (table: string) => Condition) =>
    driver.table === 'messages' || TAG_COLUMNS.includes(column)
      ? own.push(condition('x'))
      : message.push(condition('m'));
  const answered = new Set(driver.prefix.map(([column]) => column));
  for (const [name, column] of COLUMNS) {
    const values = filter[name];
    if (values && !answered.has(column)) put(column, (table) => anyOf(`${table}.${column}`, values));
  }
  const { shapes, keys, tags, from, to, hashes } = filter;
  if (shapes && !answered.has('shape')) put('shape', (table) => anyOf(`${table}.shape`, shapes, 'integer'));
  if (keys)
    put(
      'shape',
      (table) =>
        sql`exists (select from shapes s where s.id = ${sql.ref(`${table}.shape`)} and s.paths && ${keys}::text[])`,
    );
  if (tags && !answered.has('tag'))
    put('tags', (table) => sql`${sql.ref(`${table}.tags`)} && ${tags}::text[]`);
  if (hashes && !answered.has('item_hash')) put('item_hash', (table) => anyOf(`${table}.item_hash`, hashes));
  if (from !== undefined) put('time', (table) => sql`${sql.ref(`${table}.time`)} >= ${from}::float8`);
  if (to !== undefined) put('time', (table) => sql`${sql.ref(`${table}.time`)} < ${to}::float8`);
  return { own, message };
}
