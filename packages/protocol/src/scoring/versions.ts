import { createParser } from '../schema.ts';
import { type Static, Type } from '../type.ts';

/** The aggregate that lists the nodes of a network, as deployed ones have it. */
export const NODE_LIST_KEY = 'corechannel';

/** The aggregate that says which versions there were and when: one field for each software. */
export const VERSIONS_KEY = 'net-software-versions';

const DATE = '^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$';
const strict = { additionalProperties: false } as const;

const Release = Type.Object(
  {
    released_on: Type.String({ pattern: DATE }),
    replaced_on: Type.Optional(Type.Union([Type.String({ pattern: DATE }), Type.Null()])),
    prerelease: Type.Optional(Type.Boolean()),
  },
  strict,
);

/** Software -> version -> when it was released, and when its successor was. Dates are of UTC. */
export const VersionTable = Type.Record(
  Type.String({ maxLength: 64 }),
  Type.Record(Type.String({ maxLength: 128 }), Release, { maxProperties: 10_000 }),
  { maxProperties: 100 },
);
export type VersionTable = Static<typeof VersionTable>;

export const parseVersionTable = createParser(VersionTable, 'versions');

const DAY_MS = 86_400_000;
const dayOf = (date: string) => Date.parse(`${date}T00:00:00Z`) / DAY_MS;

/**
 * Whether a version counts on a day: from its release until `graceDays` after its successor's. An unknown one never.
 * @param day of UTC, since 1970
 */
export function isVersionValid(
  table: VersionTable,
  software: string,
  name: string | null,
  day: number,
  graceDays: number,
): boolean {
  if (name === null || !Object.hasOwn(table, software)) return false;
  const releases = table[software]!;
  if (!Object.hasOwn(releases, name)) return false;
  const { released_on, replaced_on } = releases[name]!;
  if (day < dayOf(released_on)) return false;
  return replaced_on === undefined || replaced_on === null || day < dayOf(replaced_on) + graceDays;
}

/** The table with one release more: it replaces what was the newest before it on its day, as the next one after it replaces it. */
export function addRelease(
  table: VersionTable,
  software: string,
  version: string,
  date: string,
  isPrerelease: boolean,
): VersionTable {
  const releases: VersionTable[string] = Object.hasOwn(table, software) ? table[software]! : {};
  const { [version]: _, ...others } = releases;
  const replaced = Object.entries(others).map(([name, release]) => {
    const until = release.replaced_on ?? null;
    const isReplaced = !isPrerelease && release.released_on <= date && (until === null || until > date);
    return [name, isReplaced ? { ...release, replaced_on: date } : release];
  });
  const [successor = null] = Object.values(others)
    .flatMap(({ released_on: on, prerelease }) => (on > date && !prerelease ? [on] : []))
    .sort();
  const added = { released_on: date, replaced_on: successor, ...(isPrerelease ? { prerelease: true } : {}) };
  return parseVersionTable({ [software]: { ...Object.fromEntries(replaced), [version]: added } });
}
