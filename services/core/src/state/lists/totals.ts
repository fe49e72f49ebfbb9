import { prepared } from '@skerry/database';
import { type Kysely, sql, type Transaction } from 'kysely';
import type { Schema } from '../../store/schema.ts';
import { meansIndex } from './driver.ts';
import {
  compareLabels,
  DAY,
  dayLabelOf,
  isDay,
  mayPair,
  pairOf,
  partsOf,
  SINGLE_LABELS,
  TAG_LABEL,
} from './labels.ts';
import { indexOf, LABELLED } from './properties.ts';

/**
 * Totals of message lists: exact, and not counted when they are asked for.
 *
 * Every label has its total. A pair of labels has one when both are heavy, that is, once had HEAVY messages: where one
 * of them is light, counting its few messages is quick. The pairs of a label are counted once, when it becomes heavy,
 * and kept from then on. Days count as heavy from the start, so that a heavy label has a total for each of its days.
 * So a message costs one update for each label and pair that it shares with others of its batch. Two tags are no pair: a
 * message may have any two of the tags that strangers made heavy, and there would be a total of each two.
 */
export const HEAVY = 1_000;
/**
 * Of so many messages of a batch one label may become heavy, of fewer one, too: its pairs are counted while all others who write wait, and
 * the sixty-four tags of one message may be the thousandth together. The rest do with a later batch.
 */
const MESSAGES_PER_RISING = 250;

/** The label of all messages. */
export const ALL = '';

/** Messages that came into the lists (1) or left them (-1), by their labels. */
export interface Counted {
  readonly labels: readonly string[];
  readonly by: 1 | -1;
}

const add = (sums: Map<string, number>, key: string, by: number) => sums.set(key, (sums.get(key) ?? 0) + by);

/** Messages of a batch whose labels are counted: what the labels have now, and which are heavy, is on its way. */
export interface Counting {
  readonly groups: readonly Group[];
  readonly messages: number;
  readonly labels: Promise<
    readonly { readonly a: string; readonly total: number; readonly heavy: boolean }[]
  >;
}

/** Counts the labels of a batch, before its rows are there: the database says what they have while it is sent those. */
export function beginCounting(trx: Transaction<Schema>, counted: readonly Counted[]): Counting {
  const groups = groupByLabels(counted);
  const singles = new Map<string, number>();
  for (const { labels, by } of groups) {
    add(singles, ALL, by);
    for (const label of labels) add(singles, label, by);
  }
  const labels = readNow(trx, singles);
  // What fails is told when it is waited for.
  labels.catch(() => {});
  return { groups, messages: counted.length, labels };
}

async function readNow(trx: Transaction<Schema>, singles: ReadonlyMap<string, number>) {
  if (singles.size === 0) return [];
  const { rows } = await sql<Awaited<Counting['labels']>[number]>`${prepared()}
    insert into totals (a, b, total) select a, ${ALL}, total
    from unnest(${[...singles.keys()]}::text[], ${[...singles.values()]}::bigint[]) as t (a, total) order by a
    on conflict (a, b) do update set total = totals.total + excluded.total
    returning a, total, heavy`.execute(trx);
  return rows;
}

/** Counts its pairs. The rows of the batch are in the lists' tables already, or on their way there. */
export async function endCounting(
  trx: Transaction<Schema>,
  { groups, messages, labels }: Counting,
  heavyFrom: number,
): Promise<void> {
  const rows = await labels;
  const heavy = new Set(rows.filter((row) => row.heavy || isDay(row.a)).map((row) => row.a));
  // Nobody waits for it: what fails is told by what comes after it.
  countPairs(trx, groups, heavy).catch(() => {});
  const risen = rows
    .filter((row) => row.a !== ALL && !heavy.has(row.a) && row.total >= heavyFrom)
    .sort((one, other) => other.total - one.total)
    .slice(0, Math.max(1, Math.floor(messages / MESSAGES_PER_RISING)));
  // One after another: the second of two that rise together finds the first one heavy.
  for (const { a } of risen) await becomeHeavy(trx, a);
}

/** No text of a message has it. */
const SEPARATOR = '\0';

interface Group {
  readonly labels: readonly string[];
  by: number;
}

/** Messages of a batch are alike: those with the same labels count together. */
function groupByLabels(counted: readonly Counted[]): Group[] {
  const groups = new Map<string, Group>();
  // Most have the same list (createLabeller).
  const ofList = new Map<readonly string[], Group>();
  for (const { labels, by } of counted) {
    const known = ofList.get(labels);
    if (known) {
      known.by += by;
      continue;
    }
    const key = labels.join(SEPARATOR);
    const group = groups.get(key) ?? { labels, by: 0 };
    group.by += by;
    groups.set(key, group);
    ofList.set(labels, group);
  }
  return [...groups.values()];
}

/** What pairs of heavy labels count: by the number of the one that comes first, times how many there are, plus that of the other. */
function addUpPairs(groups: readonly Group[], heavy: readonly string[]): Map<number, number> {
  const numbers = new Map(heavy.map((label, number) => [label, number]));
  const sums = new Map<number, number>();
  for (const { labels, by } of groups) {
    const own: number[] = [];
    for (const label of labels) {
      const number = numbers.get(label);
      if (number !== undefined) own.push(number);
    }
    own.sort((x, y) => x - y);
    for (let at = 0; at < own.length; at++) {
      for (let other = at + 1; other < own.length; other++) {
        const [x, y] = [own[at]!, own[other]!];
        if (!mayPair(heavy[x]!, heavy[y]!)) continue;
        const pair = x * heavy.length + y;
        sums.set(pair, (sums.get(pair) ?? 0) + by);
      }
    }
  }
  return sums;
}

async function countPairs(
  trx: Transaction<Schema>,
  groups: readonly Group[],
  heavy: ReadonlySet<string>,
): Promise<void> {
  // Numbered in the order of the labels, which those of a pair have. A batch has many pairs again and again: a text of each would be made.
  const labels = [...heavy].sort(compareLabels);
  const pairs = [...addUpPairs(groups, labels)];
  if (pairs.length === 0) return;
  const firsts = pairs.map(([pair]) => labels[Math.floor(pair / labels.length)]!);
  const seconds = pairs.map(([pair]) => labels[pair % labels.length]!);
  await sql`${prepared()}
    insert into totals (a, b, total)
    select * from unnest(${firsts}::text[], ${seconds}::text[], ${pairs.map(([, total]) => total)}::bigint[])
    on conflict (a, b) do update set total = totals.total + excluded.total`.execute(trx);
}

/** The index that has the messages of each of a property's labels. */
const OWN_INDEX = new Map<string, ReturnType<typeof ownOf>>(LABELLED.map((one) => [one.letter, ownOf(one)]));

function ownOf({ name, column, type, many }: (typeof LABELLED)[number]) {
  const index = indexOf(name)?.name;
  if (index === undefined) throw new Error(`${name} has labels, and no index of its own to count them by`);
  return { column, type, many, index };
}

/** What the labels of a message are made of, and what its tags are found by. */
const LABELLED_COLUMNS = [
  'item_hash',
  'time',
  ...LABELLED.flatMap(({ column, many }) => (many ? [] : column)),
];
const OWN_COLUMNS = sql.join(LABELLED_COLUMNS.map((column) => sql.ref(`m.${column}`)));

/** The messages that have a label, with all of their labels but the tags. */
const messagesWith = (label: string) => {
  const [letter, value] = partsOf(label);
  const { column, type, many, index } = OWN_INDEX.get(letter)!;
  if (many)
    return sql`select ${OWN_COLUMNS} from message_tags g join messages m using (item_hash)
      where g.tag = ${value} and ${meansIndex('g', index)}`;
  return sql`select ${OWN_COLUMNS} from messages m where m.status = 'processed' and ${meansIndex('m', index)}
    and ${sql.ref(`m.${column}`)} = ${type === 'integer' ? Number(value) : value}`;
};

const LABELS_OF_OWN = SINGLE_LABELS.map(
  ({ label }) => sql`select ${sql.raw(label)} as label, count(*) as total from own group by 1`,
);
const TAGS_OF_OWN = sql`select ${sql.raw(TAG_LABEL.label)} as label, count(*) as total
  from own join message_tags g using (item_hash) group by 1`;

/** How many of the messages `own` have each label that may pair. Counted before anything is asked of a label: they have few different ones. */
const othersOf = (label: string) =>
  sql.join(
    partsOf(label)[0] === TAG_LABEL.letter ? LABELS_OF_OWN : [...LABELS_OF_OWN, TAGS_OF_OWN],
    sql` union all `,
  );
const DAYS = sql.lit(DAY);

/** Counts the pairs of a label with everything that is heavy, once; it has about HEAVY messages then. */
async function becomeHeavy(trx: Transaction<Schema>, label: string): Promise<void> {
  await sql`update totals set heavy = true where a = ${label} and b = ${ALL}`.execute(trx);
  await sql`
    with own as materialized (${messagesWith(label)}), others as (${othersOf(label)})
    insert into totals (a, b, total)
    select least(label, ${label}::text collate "C"), greatest(label, ${label}::text collate "C"), total from others
    where left(label, 1) <> left(${label}::text, 1)
      and (left(label, 1) = ${DAYS} or exists (select from totals t where t.a = others.label and t.b = ${ALL} and t.heavy))
    on conflict (a, b) do update set total = excluded.total`.execute(trx);
}

export interface Total {
  readonly total: number;
  /** Whether the totals of its pairs with other heavy labels are kept. */
  readonly heavy: boolean;
}

/** By label; a label that no message ever had is left out. */
export async function readTotals(
  db: Kysely<Schema>,
  labels: readonly string[],
): Promise<ReadonlyMap<string, Total>> {
  const { rows } = await sql<{ a: string; total: number; heavy: boolean }>`
    select a, total, heavy from totals where b = ${ALL} and a = any(${labels}::text[])`.execute(db);
  return new Map(rows.map((row) => [row.a, row]));
}

/** How many messages are in the lists at all. */
export const countAll = async (db: Kysely<Schema>): Promise<number> =>
  (await readTotals(db, [ALL])).get(ALL)?.total ?? 0;

/** The sum of the pairs' totals; both labels of each are heavy. */
export async function sumPairs(
  db: Kysely<Schema>,
  pairs: readonly (readonly [string, string])[],
): Promise<number> {
  if (pairs.length === 0) return 0;
  const keys = pairs.map(([x, y]) => pairOf(x, y));
  const { rows } = await sql<{ total: number }>`
    select coalesce(sum(t.total), 0)::bigint as total
    from unnest(${keys.map(([a]) => a)}::text[], ${keys.map(([, b]) => b)}::text[]) as k (a, b)
    join totals t on t.a = k.a collate "C" and t.b = k.b collate "C"`.execute(db);
  return rows[0]!.total;
}

/** The messages of whole days, from one inclusive to another exclusive: all, or those of heavy labels. */
export async function sumDays(
  db: Kysely<Schema>,
  labels: readonly string[] | undefined,
  from: number,
  to: number,
): Promise<number> {
  const [first, last] = [dayLabelOf(from), dayLabelOf(to)];
  const { rows } = labels
    ? await sql<{ total: number }>`
        select coalesce(sum(t.total), 0)::bigint as total from unnest(${labels}::text[]) as l (label)
        join totals t on t.a = l.label collate "C" and t.b >= ${first} and t.b < ${last}`.execute(db)
    : await sql<{ total: number }>`
        select coalesce(sum(total), 0)::bigint as total from totals
        where a >= ${first} and a < ${last} and b = ${ALL}`.execute(db);
  return rows[0]!.total;
}
