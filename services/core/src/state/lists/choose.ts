import type { Kysely } from 'kysely';
import type { Schema } from '../../store/schema.ts';
import { type Driver, listDrivers, scansOf, scansOfRefs, unlistedDriver } from './driver.ts';
import { type Given, givenOf } from './filter.ts';
import { labelOf } from './labels.ts';
import type { MessageFilter, PropertyName } from './properties.ts';
import { readTotals, sumPairs, type Total } from './totals.ts';

/** Pairs of values whose totals are read to choose an index. */
const PAIRS_MAX = 1_000;

const labelsOf = ({ letter, values }: Given) => values.map((value) => labelOf(letter, value));

/** Names one property, or two in either order. */
const boundKey = (...names: PropertyName[]) => [...new Set(names)].sort().join(' ');

/** Upper bounds of how many messages have two properties, by kept totals; where they are not kept, of how many have one. */
async function boundPairs(db: Kysely<Schema>, given: readonly Given[]): Promise<Map<string, number>> {
  const totals = await readTotals(db, given.flatMap(labelsOf));
  const bounds = new Map<string, number>();
  const ofOne = (one: Given) =>
    labelsOf(one).reduce((sum, label) => sum + (totals.get(label)?.total ?? 0), 0);
  const isHeavy = (label: string) => (totals.get(label) satisfies Total | undefined)?.heavy === true;
  for (const [index, x] of given.entries()) {
    bounds.set(boundKey(x.name), ofOne(x));
    for (const y of given.slice(index + 1)) {
      const [xs, ys] = [labelsOf(x), labelsOf(y)];
      const kept = xs.length * ys.length <= PAIRS_MAX && [...xs, ...ys].every(isHeavy);
      const bound = kept
        ? await sumPairs(
            db,
            xs.flatMap((a) => ys.map((b) => [a, b] as const)),
          )
        : Math.min(ofOne(x), ofOne(y));
      bounds.set(boundKey(x.name, y.name), bound);
    }
  }
  return bounds;
}

const boundOf = (answers: readonly PropertyName[], bounds: ReadonlyMap<string, number>): number =>
  Math.min(...answers.flatMap((x) => answers.map((y) => bounds.get(boundKey(x, y)) ?? Infinity)));

/** Entries of an index that are read in the time of one that needs its row as well, at least: of ten million messages, in memory. */
const ENTRIES_PER_ROW = 6;

const costOf = ({ answers, isCovering }: Driver, bounds: ReadonlyMap<string, number>): number =>
  boundOf(answers, bounds) * (isCovering ? 1 : ENTRIES_PER_ROW);

/**
 * The index to read a list from: the one that answers all of the filter, or else the one with the fewest messages to look
 * through, those that must be fetched weighing more. undefined: no message fits.
 */
async function chooseDriver(db: Kysely<Schema>, filter: MessageFilter): Promise<Driver | undefined> {
  const drivers = listDrivers(filter);
  const given = givenOf(filter);
  const [first] = drivers;
  if (drivers.length === 1 || first!.answers.length === given.length) return first;
  const bounds = await boundPairs(db, given);
  if ([...bounds.values()].includes(0)) return undefined;
  return drivers.reduce((best, one) => (costOf(one, bounds) < costOf(best, bounds) ? one : best));
}

/** What lets the messages that name something be the few to look through. */
const LEAVES_REFS_FEW: readonly string[] = ['types', 'contentTypes'] satisfies PropertyName[];

/** The scans that together give what a filter asks for; none where no message fits. */
export async function chooseScans(db: Kysely<Schema>, filter: MessageFilter): Promise<Driver[]> {
  const { statuses, refs, hashes } = filter;
  const others = statuses?.filter((status) => status !== 'processed') ?? [];
  const unlisted = others.length > 0 ? [unlistedDriver(filter, others)] : [];
  if (statuses && !statuses.includes('processed')) return unlisted;
  if (refs && !hashes && givenOf(filter).every(({ name }) => LEAVES_REFS_FEW.includes(name)))
    return [...scansOfRefs(filter), ...unlisted];
  const driver = await chooseDriver(db, filter);
  return [...(driver ? scansOf(filter, driver) : []), ...unlisted];
}
