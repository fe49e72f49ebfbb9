import { AppError } from '@skerry/protocol';
import type { Kysely } from 'kysely';
import { sql } from 'kysely';
import type pg from 'pg';
import type { TimedPage } from '../../packages/database/src/page.ts';
import { findAggregate, listAggregates } from '../../services/core/src/state/aggregates/aggregates.ts';
import { listInstances } from '../../services/core/src/state/instances/instances.ts';
import { totalMessages } from '../../services/core/src/state/lists/count.ts';
import { resolveFilter } from '../../services/core/src/state/lists/filter.ts';
import { listMessages } from '../../services/core/src/state/lists/messages.ts';
import type { MessageFilter } from '../../services/core/src/state/lists/properties.ts';
import { findMessage } from '../../services/core/src/state/messages/find.ts';
import type { Schema } from '../../services/core/src/store/schema.ts';
import { addressOf, type DataSet, hashOf } from '../data-set/data-set.ts';
import type { Goal } from '../measure/figure.ts';
import { type Figures, tell } from '../measure/figures.ts';
import {
  explain,
  HEADER,
  type Query,
  recordQueries,
  Times,
  timeOf,
  timeReaders,
} from '../measure/queries.ts';
import { combine, combineThree, listContentTypes, listProperties, type Property } from './values.ts';

export interface Bench {
  readonly figures: Figures;
  readonly db: Kysely<Schema>;
  readonly pool: pg.Pool;
  readonly set: DataSet;
  /** What was asked of the database lately. */
  readonly recorded: Query[];
}

const GOAL_MS = 30;
const TOLD_AT_ONCE_MS = 1_000;
const ROUNDS = 6;
const SAMES = 3;
const PAGE = 20;
/** The least that a page can cost. */
const FLOOR = 'as many rows by primary key';
const DEEP_PAGE = 50;
const HEAD = `${''.padEnd(44)}${HEADER}   ms; * best of 3 in a row`;
/** Reading all of these is cheap at any size of the node. */
const SMALL = new Set(['shapes', 'event_counter']);
/** A table of a megabyte is read whole as fast as by an index: what the planner does with it says nothing of a larger one. */
const FEW_PAGES = 128;

const createFloor = ({ db, set }: Bench) => {
  let turn = 0;
  return () => {
    const hashes = Array.from({ length: PAGE }, () => hashOf(set.dice, (turn++ * 7_919 + 13) % set.count));
    return sql`select * from messages where item_hash = any(${hashes}::text[])`.execute(db);
  };
};

/** Where in a list: its first page, a deep one, and after cursors all over the time that the set covers. */
function listPlaces({ set }: Bench): { name: string; pageOf: (round: number) => TimedPage }[] {
  const cursorOf = (round: number) => {
    const part = (round + 0.5) / ROUNDS;
    return { time: 1_650_000_000 + part * 3 * 365 * 86_400, itemHash: hashOf(set.dice, round) };
  };
  return [
    { name: 'first page', pageOf: () => ({ limit: PAGE, offset: 0 }) },
    { name: `page ${DEEP_PAGE}`, pageOf: () => ({ limit: PAGE, offset: PAGE * (DEEP_PAGE - 1) }) },
    { name: 'after a cursor', pageOf: (round) => ({ limit: PAGE, offset: 0, after: cursorOf(round) }) },
  ];
}

/** What was beyond the goal: measured once more at the end, since a busy machine is slow now and then. */
const slow: { name: string; times: Times; again: () => Promise<Times> }[] = [];
const scans = new Map<string, string>();
/** Broken off at the time limit of lists. */
const refused: string[] = [];

/** The pages that one request reads, over all of its queries; notes tables that are read whole. */
async function checkPlans(
  { pool, recorded }: Bench,
  name: string,
  body: () => Promise<unknown>,
): Promise<number> {
  let sum = 0;
  for (const query of await recordQueries(recorded, body)) {
    const { scanned, pages } = await explain(pool, query, FEW_PAGES);
    for (const table of scanned) if (!SMALL.has(table)) scans.set(table, name);
    sum += pages;
  }
  return sum;
}

async function timeRounds(run: (round: number) => Promise<unknown>): Promise<Times> {
  const times = new Times();
  for (let round = 0; round < ROUNDS; round++) {
    const sames: number[] = [];
    for (let i = 0; i < SAMES; i++) sames.push(await timeOf(() => run(round)));
    times.add(...sames);
  }
  return times;
}

/** One request at several places of its list. */
async function timeRequest(
  bench: Bench,
  name: string,
  run: (round: number) => Promise<unknown>,
): Promise<Times> {
  const pages: number[] = [];
  const first = new Times();
  try {
    first.add(await timeOf(() => run(0)));
    for (const round of [0, ROUNDS - 1]) pages.push(await checkPlans(bench, name, () => run(round)));
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'LIST_TOO_COSTLY') throw error;
    refused.push(name);
    return first;
  }
  // A case that takes seconds is told by the first time.
  if (first.at(1) > TOLD_AT_ONCE_MS) return first;
  const times = await timeRounds(run);
  times.pages = Math.max(...pages);
  if (times.quietAt(0.95) > GOAL_MS) slow.push({ name, times, again: () => timeRounds(run) });
  return times;
}

async function timeCase(
  bench: Bench,
  name: string,
  filter: MessageFilter,
  kinds: Map<string, Times>,
): Promise<void> {
  const floor = createFloor(bench);
  const measure = async (kind: string, run: (round: number) => Promise<unknown>) => {
    const known = kinds.get(kind) ?? new Times();
    known.addAll(await timeRequest(bench, `${name}; ${kind}`, run));
    kinds.set(kind, known);
  };
  for (const { name: place, pageOf } of listPlaces(bench))
    await measure(place, async (round) =>
      listMessages(bench.db, await resolveFilter(bench.db, filter), pageOf(round)),
    );
  await measure('total', () => totalMessages(bench.db, filter));
  await measure(FLOOR, floor);
}

async function timeGroups(bench: Bench, groups: readonly Property[], goal?: Goal): Promise<void> {
  const all = new Map<string, Times>();
  for (const { name, values } of groups) {
    const kinds = new Map<string, Times>();
    for (const value of values) await timeCase(bench, value.name, value.filter, kinds);
    for (const [kind, times] of kinds) {
      if (kind !== FLOOR) tell(`${`${name}: ${kind}`.padEnd(44)}${times.text}`);
      const known = all.get(kind) ?? new Times();
      known.addAll(times);
      all.set(kind, known);
    }
  }
  const floor = all.get(FLOOR)!;
  for (const [kind, times] of all) {
    const values = [times.quietAt(0.5) / floor.quietAt(0.5)];
    const ratio = kind === FLOOR ? undefined : { to: FLOOR, values };
    bench.figures.addTimes(kind, times.all, { ratio, goal: kind === FLOOR ? undefined : goal });
  }
}

async function report(figures: Figures): Promise<void> {
  let slowTwice = 0;
  for (const { name, times, again } of slow.splice(0)) {
    const more = await again();
    more.pages = times.pages;
    const isSlow = more.quietAt(0.95) > GOAL_MS;
    if (isSlow) slowTwice++;
    tell(
      `  p95* beyond ${GOAL_MS} ms ${isSlow ? 'twice' : 'once '} ${name.padEnd(66)}${(isSlow ? more : times).text}`,
    );
  }
  for (const name of refused) tell(`  broken off at the time limit: ${name}`);
  for (const [table, name] of scans) tell(`  table that is read whole: ${table}, as in ${name}`);
  const none = { goal: { of: 'median', most: 0 } } as const;
  figures.add(`cases whose p95 is beyond ${GOAL_MS} ms twice`, '', slowTwice, none);
  figures.add('cases broken off at the time limit', '', refused.length);
  figures.add('tables that a plan reads whole', '', scans.size, none);
  refused.length = 0;
  scans.clear();
}

/** GET /messages with three frequent values in one list. @param properties the first one is of no filter */
export async function benchThree(bench: Bench, properties: readonly Property[]): Promise<void> {
  tell(HEAD);
  bench.figures.group('GET /messages, three frequent values at a time');
  await timeGroups(bench, combineThree(properties.slice(1)), { of: 'p95', most: GOAL_MS });
  await report(bench.figures);
}

/** GET /messages: each documented filter, alone and in pairs. Then the filters of GET /messages.json. */
export async function benchLists(bench: Bench): Promise<void> {
  const properties = await listProperties(bench.db, bench.set);
  for (const { values } of properties)
    for (const { name, filter } of values)
      tell(
        `${name.padEnd(24)} ${String(await totalMessages(bench.db, filter)).padStart(9)} messages  ${JSON.stringify(filter).slice(0, 90)}`,
      );
  tell(HEAD);
  bench.figures.group('GET /messages');
  await timeGroups(bench, [
    { name: 'no filter', values: [{ name: 'no filter', filter: {} }] },
    ...combine(properties),
  ]);
  await report(bench.figures);
  await benchThree(bench, properties);
  const start = 1_650_000_000 + 1.2345 * 365 * 86_400;
  const dates: Property = {
    name: 'dates',
    values: [
      { name: 'a year', filter: { from: start, to: start + 365 * 86_400 } },
      { name: 'a day', filter: { from: start, to: start + 86_400 } },
      { name: 'since', filter: { from: start } },
    ],
  };
  const [, addresses, channels] = properties;
  const contentTypes = await listContentTypes(bench.db, bench.set.count);
  tell(HEAD);
  bench.figures.group('GET /messages.json');
  const own = new Set([dates.name, contentTypes.name]);
  const groups = combine([addresses!, channels!, contentTypes, dates]).filter(({ name }) =>
    name.split(' + ').some((part) => own.has(part)),
  );
  await timeGroups(bench, groups);
  await report(bench.figures);
}

/** GET /aggregates and GET /instances. */
export async function benchOthers(bench: Bench): Promise<void> {
  const { figures, db, set } = bench;
  const owner = addressOf(set.dice, 0);
  const single = (await sql<{ owner: string }>`select owner from aggregates limit 1`.execute(db)).rows[0]!
    .owner;
  const last = { time: 1_650_000_000 + 1.5 * 365 * 86_400, owner: '', key: '' };
  const filters = [
    ['no filter', {}],
    ['address, many', { owners: [owner] }],
    ['address, one', { owners: [single] }],
    ['key, many', { keys: ['profile'] }],
    ['key, fewer', { keys: ['settings-1'] }],
    ['keys', { keys: ['settings-1', 'settings-2', 'profile'] }],
    ['content.fields, many', { fields: ['name'] }],
    ['content.fields, few', { fields: ['item77'] }],
    ['key + content.fields, few', { keys: ['settings-27'], fields: ['item77'] }],
    ['key + content.fields, none', { keys: ['profile'], fields: ['item77'] }],
    ['address + key', { owners: [owner], keys: ['profile'] }],
    ['address + content.fields', { owners: [owner], fields: ['item77'] }],
  ] as const;
  tell(HEAD);
  figures.group('GET /aggregates, page and total');
  let all = new Times();
  const run = async (name: string, body: () => Promise<unknown>) => {
    const times = await timeRequest(bench, name, body);
    tell(`${name.padEnd(44)}${times.text}`);
    all.addAll(times);
  };
  for (const [name, filter] of filters) {
    await run(name, () => listAggregates(db, filter, { limit: PAGE, offset: 0 }));
    await run(`${name}; page ${DEEP_PAGE}`, () =>
      listAggregates(db, filter, { limit: PAGE, offset: PAGE * (DEEP_PAGE - 1) }),
    );
    await run(`${name}; after a cursor`, () =>
      listAggregates(db, filter, { limit: PAGE, offset: 0, after: last }),
    );
  }
  figures.addTimes('all of them', all.all);
  all = new Times();
  tell(HEAD);
  figures.group('GET /instances, page and total');
  for (const address of [undefined, owner, single])
    for (const status of [undefined, 'running', 'stopped'] as const) {
      const name = `${address === undefined ? 'all' : address === owner ? 'address, many' : 'address, few'}, ${status ?? 'any status'}`;
      await run(name, () => listInstances(db, { address, status }, { limit: PAGE, offset: 0 }));
      await run(`${name}; page ${DEEP_PAGE}`, () =>
        listInstances(db, { address, status }, { limit: PAGE, offset: PAGE * (DEEP_PAGE - 1) }),
      );
    }
  figures.addTimes('all of them', all.all);
  await report(figures);
}

const READERS = 50;
const REQUESTS = 100;
const PER_SECOND = 10;

/** One message by hash and one aggregate by key, asked for by many at a time. */
export async function benchReaders({ figures, db, set }: Bench): Promise<void> {
  const { rows } = await sql<{
    owner: string;
    key: string;
  }>`select owner, key from aggregates limit 5000`.execute(db);
  const byHash = (index: number) => findMessage(db, hashOf(set.dice, (index * 7_919) % set.count));
  const byKey = (index: number) => {
    const { owner, key } = rows[index % rows.length]!;
    return findAggregate(db, owner, key);
  };
  figures.group(`${READERS} readers at a time`);
  for (const [name, ask] of [
    ['a message by hash', byHash],
    ['an aggregate by key', byKey],
  ] as const) {
    // Connections are made.
    await timeReaders(READERS, 2, ask);
    const paced = await timeReaders(READERS, REQUESTS, ask, PER_SECOND);
    figures.addTimes(`${name}, ${PER_SECOND} requests a second each`, paced.all);
    let times = new Times();
    const totalMs = await timeOf(async () => {
      times = await timeReaders(READERS, REQUESTS, ask);
    });
    figures.addTimes(`${name}, without pause`, times.all);
    figures.add(`${name}, without pause, in all`, '/s', (times.count / totalMs) * 1000);
  }
}
