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
  /** The filtered properties that the index answers. */
  readonly answers: readonly Property[];
  /** Column -> values; in the index's order. */
  readonly prefix: readonly Prefix[];
}
type Prefix = readonly [column: string, values: readonly unknown[], type?: string];

/** Rows that may be merged for one page, over all combinations; beyond it fewer columns are looked up. */
const MERGED_ROWS_MAX = 100_000;

/** The indexes that serve a filter, those that answer more of it first. `type` without a filter: all types are merged. */
export function listDrivers(filter: MessageFilter): Driver[] {
  const { hashes, tags, addresses, channels, contentTypes, shapes, subjects } = filter;
  if (hashes) return [{ table: 'messages', answers: [], prefix: [['item_hash', hashes]] }];
  const type: Prefix = ['type', filter.types ?? MESSAGE_TYPES];
  const t: Property[] = filter.types ? ['t'] : [];
  const sender: Prefix | undefined = addresses && ['sender', addresses];
  const channel: Prefix | undefined = channels && ['channel', channels];
  const shape: Prefix | undefined = shapes && ['shape', shapes, 'integer'];
  const tag: Prefix | undefined = tags && ['tag', tags];
  const drivers: Driver[] = [];
  const put = (answers: readonly Property[], ...prefix: readonly (Prefix | undefined)[]) => {
    const complete = prefix.filter((one) => one !== undefined);
    if (complete.length < prefix.length) return;
    drivers.push({
      table: complete[0]?.[0] === 'tag' ? 'message_tags' : 'messages',
      answers,
      prefix: complete,
    });
  };
  put(['g', 's', ...t], tag, sender, type);
  put(['g', 'c', ...t], tag, channel, type);
  put(['g', 'k'], tag, shape);
  put(['s', 'c', ...t], sender, channel, type);
  put(['s', 'k'], sender, shape);
  put(['c', 'k'], channel, shape);
  put(['g', ...t], tag, type);
  put([], subjects && ['subject', subjects], type);
  put(['s', ...t], sender, type);
  put(['p'], contentTypes && ['content_type', contentTypes]);
  put(['c', ...t], channel, type);
  put(['k'], shape);
  if (filter.types) put(t, type);
  return drivers.length > 0 ? drivers : [{ table: 'messages', answers: [], prefix: [] }];
}

const product = (prefix: readonly Prefix[]) => prefix.reduce((count, [, values]) => count * values.length, 1);

/** Leaves out the last columns of a driver while there are too many combinations for pages of this depth. */
export function narrowDriver(driver: Driver, depth: number): Driver {
  let { prefix } = driver;
  while (prefix.length > 1 && product(prefix) * depth > MERGED_ROWS_MAX) prefix = prefix.slice(0, -1);
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
  if (driver.table === 'messages') own.push(sql`x.status = 'processed'`);
  return { own, message };
}
