import { type Kysely, sql } from 'kysely';
import type { Schema } from '../../store/schema.ts';
import { chooseScans } from './choose.ts';
import { isRepeating, meansIndex, rowsOf } from './driver.ts';
import { type Given, givenOf, isEmpty, resolveFilter } from './filter.ts';
import { DAY_SECONDS, labelOf } from './labels.ts';
import { indexOf, type MessageFilter, PROPERTY_NAMES, propertyOf } from './properties.ts';
import { withTimeLimit } from './time-limit.ts';
import { ALL, readTotals, sumDays, sumPairs, type Total } from './totals.ts';

type Totals = ReadonlyMap<string, Total>;
const ZERO: Total = { total: 0, heavy: false };
const totalOf = (totals: Totals, { letter }: Given, value: string | number) =>
  totals.get(labelOf(letter, value)) ?? ZERO;

/** Counts one by one, by the indexes that leave the fewest messages to look at. */
async function countMessages(db: Kysely<Schema>, filter: MessageFilter): Promise<number> {
  if (isEmpty(filter)) return 0;
  const scans = await chooseScans(db, filter);
  if (scans.length === 0) return 0;
  const counts = scans.map((driver) => {
    const counted = isRepeating(filter, driver) ? sql`count(distinct x.item_hash)` : sql`count(*)`;
    return sql`(select ${counted} ${rowsOf(filter, driver)})`;
  });
  const { rows } = await sql<{ total: number }>`select ${sql.join(counts, sql` + `)} as total`.execute(db);
  return rows[0]!.total;
}

/** Heavy values have kept totals of their pairs; the few messages of the others are counted. */
function splitOf(totals: Totals, given: Given) {
  const heavy = given.values.filter((value) => totalOf(totals, given, value).heavy);
  const light = given.values.filter((value) => !totalOf(totals, given, value).heavy);
  return { heavy, light, heavyLabels: heavy.map((value) => labelOf(given.letter, value)) };
}

async function countTwo(
  db: Kysely<Schema>,
  filter: MessageFilter,
  totals: Totals,
  x: Given,
  y: Given,
): Promise<number> {
  const [ofX, ofY] = [splitOf(totals, x), splitOf(totals, y)];
  const kept = await sumPairs(
    db,
    ofX.heavyLabels.flatMap((a) => ofY.heavyLabels.map((b) => [a, b] as const)),
  );
  return (
    kept +
    (await countMessages(db, { ...filter, [x.name]: ofX.light })) +
    (ofX.heavy.length > 0
      ? await countMessages(db, { ...filter, [x.name]: ofX.heavy, [y.name]: ofY.light })
      : 0)
  );
}

/** Whole days by their totals, what is before and after them one by one. */
async function countDated(
  db: Kysely<Schema>,
  filter: MessageFilter,
  totals: Totals,
  given: Given | undefined,
): Promise<number> {
  const { from = 0, to = Infinity } = filter;
  const [first, last] = [Math.ceil(from / DAY_SECONDS), Math.floor(to / DAY_SECONDS)];
  if (first >= last) return countMessages(db, filter);
  const split = given && splitOf(totals, given);
  const whole = split?.heavyLabels.length === 0 ? 0 : await sumDays(db, split?.heavyLabels, first, last);
  const heavy = given && split ? { ...filter, [given.name]: split.heavy } : filter;
  const [start, end] = [first * DAY_SECONDS, last * DAY_SECONDS];
  return (
    whole +
    (from < start ? await countMessages(db, { ...heavy, to: start }) : 0) +
    (end < to ? await countMessages(db, { ...heavy, from: end }) : 0) +
    (given && split ? await countMessages(db, { ...filter, [given.name]: split.light }) : 0)
  );
}

const TAGS_INDEX = indexOf('tags')!.name;

/** Messages with one of two tags: those of each, without those that have both twice. Read at once, since counting may take a while. */
function countTwoTags(db: Kysely<Schema>, totals: Totals, tags: Given): Promise<number> {
  const [few, many] = tags.values.toSorted(
    (one, other) => totalOf(totals, tags, one).total - totalOf(totals, tags, other).total,
  );
  return withTimeLimit(db, async (on) => {
    const { rows } = await sql<{ total: number }>`
      select (select coalesce(sum(total), 0) from totals
          where b = ${ALL} and a = any(${[few!, many!].map((value) => labelOf(tags.letter, value))}::text[]))::bigint
        - (select count(*) from message_tags x where x.tag = ${few} and ${meansIndex('x', TAGS_INDEX)}
            and exists (select from message_tags y where y.item_hash = x.item_hash and y.tag = ${many})) as total`.execute(
      on,
    );
    return rows[0]!.total;
  });
}

/** A property that nothing but looking at the messages can answer: neither are its totals kept, nor is it a date. */
const isUnkept = (filter: MessageFilter) =>
  PROPERTY_NAMES.some((name) => {
    const { letter, column } = propertyOf(name);
    return filter[name] !== undefined && letter === undefined && column !== 'time';
  });

/** The total where it follows from kept ones; undefined where all has to be counted. */
async function findTotal(db: Kysely<Schema>, filter: MessageFilter): Promise<number | undefined> {
  if (isUnkept(filter)) return undefined;
  const given = givenOf(filter);
  const labels = given.flatMap(({ letter, values }) => values.map((value) => labelOf(letter, value)));
  const totals = await readTotals(db, [ALL, ...labels]);
  if (given.some((one) => one.values.every((value) => totalOf(totals, one, value).total === 0))) return 0;
  const [x, y, ...more] = given;
  const dated = filter.from !== undefined || filter.to !== undefined;
  const tags = given.find(({ many }) => many);
  // Tags overlap, so that their totals cannot be added.
  if (tags && tags.values.length > 1)
    return given.length === 1 && tags.values.length === 2 && !dated
      ? countTwoTags(db, totals, tags)
      : undefined;
  // Of one day there may be any number.
  if (dated) return y ? undefined : withTimeLimit(db, (on) => countDated(on, filter, totals, x));
  if (!x) return totals.get(ALL)?.total ?? 0;
  if (!y) return x.values.reduce<number>((sum, value) => sum + totalOf(totals, x, value).total, 0);
  return more.length === 0 ? countTwo(db, filter, totals, x, y) : undefined;
}

/** How many messages fit, exactly. Throws LIST_TOO_COSTLY. */
export async function totalMessages(db: Kysely<Schema>, asked: MessageFilter): Promise<number> {
  const filter = await resolveFilter(db, asked);
  if (isEmpty(filter)) return 0;
  return (await findTotal(db, filter)) ?? withTimeLimit(db, (on) => countMessages(on, filter));
}
