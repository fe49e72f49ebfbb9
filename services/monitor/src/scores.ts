import {
  type ComputedScores,
  type CoreClient,
  computeScoresOf,
  type PublishedScores,
  publishScores,
  type RefusedMessage,
  readLastScores,
  readNewestMetrics,
  readRegistrations,
  readVersionTable,
  type SignedMessageSource,
} from '@skerry/client';
import type { Logger } from '@skerry/kit';
import { addRelease, DEFAULT_SCORING_SETTINGS, VERSIONS_KEY, type VersionTable } from '@skerry/protocol';
import { isRefusal } from './report.ts';

export interface Release {
  readonly software: string;
  readonly version: string;
}

/** `SOFTWARE@VERSION` of the settings. */
export function parseRelease(text: string): Release {
  const [, software, version] = /^([a-z0-9-]{1,64})@([\x21-\x7e]{1,64})$/.exec(text) ?? [];
  if (software === undefined || version === undefined) throw new Error('expected SOFTWARE@VERSION');
  return { software, version };
}

type Versions = VersionTable[string];

/** One software with these versions added, as released on a day; undefined where that changes nothing. None of them replaces another. */
function keepVersions(
  table: VersionTable,
  software: string,
  kept: ReadonlySet<string>,
  date: string,
): Versions | undefined {
  const known: Versions = Object.hasOwn(table, software) ? table[software]! : {};
  const lacking = [...kept].filter((version) => !Object.hasOwn(known, version));
  const added = lacking.map(
    (version) => [version, addRelease(table, software, version, date, false)[software]![version]!] as const,
  );
  const all = [...Object.entries(known), ...added];
  const [newest] = all
    .flatMap(([version, { released_on: on, prerelease }]) =>
      kept.has(version) && !prerelease && on <= date ? [on] : [],
    )
    .toSorted()
    .toReversed();
  let isChanged = added.length > 0;
  const entries = all.map(([version, release]) => {
    const { released_on: on, replaced_on: until = null } = release;
    const isReplaced = newest !== undefined && on <= newest && (until === null || until > date);
    if (kept.has(version) || !isReplaced) return [version, release] as const;
    isChanged = true;
    return [version, { ...release, replaced_on: date }] as const;
  });
  return isChanged ? Object.fromEntries(entries) : undefined;
}

/**
 * What is new of a table that has these releases: those that it lacks are released on this day, on which all that is as old and no
 * longer among them is replaced. Undefined where nothing is.
 */
export function addReleases(
  table: VersionTable,
  releases: readonly Release[],
  date: string,
): VersionTable | undefined {
  const content = [...Map.groupBy(releases, ({ software }) => software)].flatMap(([software, of]) => {
    const kept = new Set(of.map(({ version }) => version));
    const versions = keepVersions(table, software, kept, date);
    return versions ? [[software, versions] as const] : [];
  });
  return content.length === 0 ? undefined : Object.fromEntries(content);
}

/** Sees to it that the version table of this key has these releases: for a network where nobody else keeps one. */
export async function keepReleases(
  core: CoreClient,
  releases: readonly Release[],
  nowMs: number,
): Promise<void> {
  if (releases.length === 0) return;
  const table = await readVersionTable({ coreUrl: core.url }, core.signer.address);
  const content = addReleases(table, releases, new Date(nowMs).toISOString().slice(0, 10));
  if (content) await core.postMessage({ type: 'AGGREGATE', content: { key: VERSIONS_KEY, content } });
}

export interface ScoresOptions {
  readonly core: CoreClient;
  /** Whose node list says who registered first; undefined where there is none. */
  readonly nodeListOwner: string | undefined;
  readonly hourSeconds: number;
  readonly everyHours: number;
  readonly tags: readonly string[];
  readonly signal: AbortSignal;
  readonly log: Logger;
}

/** What is older tells nothing of now (as `skerry score compute --publish`). */
const MAX_AGE_HOURS = 3;

type ScoresContent = ComputedScores['content'];

/** Whether the newest published scores say what was computed, of the same period. Pure. */
export const isPublished = (
  latest: Pick<ScoresContent, 'period' | 'scores_hash'> | undefined,
  { period, scores_hash: hash }: Pick<ScoresContent, 'period' | 'scores_hash'>,
): boolean => latest?.scores_hash === hash && latest.period?.to_date === period.to_date;

/** Whether scores of all that was measured before a time are published. Pure. @param due Unix seconds */
const isPublishedSince = (latest: Pick<ScoresContent, 'period'> | undefined, due: number): boolean =>
  Date.parse(latest?.period?.to_date ?? '') >= due * 1000;

/** Whether nothing was measured since: that is known without the whole period. What cannot be read or verified tells nothing. */
async function isSilentSince(source: SignedMessageSource, publisher: string, time: number): Promise<boolean> {
  try {
    const newest = await readNewestMetrics(source, [publisher]);
    return newest === undefined || newest.time < time;
  } catch {
    return false;
  }
}

/** What this monitor published last; undefined where there is none, or it has another form: that is told, and says nothing of what is due. */
async function readOwnLast(
  source: SignedMessageSource,
  publisher: string,
  log: Logger,
): Promise<PublishedScores['content'] | undefined> {
  const { scores, odd } = await readLastScores(source, [publisher]);
  for (const { error } of odd) log.warn({ err: error }, 'what was published last does not count');
  return scores[0]?.content;
}

/** Where only the balance is too low, the same is taken later. */
const isForGood = (error: unknown) =>
  isRefusal(error) && (error as { code?: unknown }).code !== 'CREDIT_INSUFFICIENT';

/** @returns false where the core node refused them for good */
async function tryPublish(
  { core, log }: Pick<ScoresOptions, 'core' | 'log'>,
  computed: ComputedScores,
  nextSeconds: number,
): Promise<boolean> {
  try {
    const published = await publishScores(core, computed);
    log.info({ ...published, scores_hash: computed.content.scores_hash }, 'published scores');
    return true;
  } catch (error) {
    if (!isForGood(error)) throw error;
    const next = new Date(nextSeconds * 1000).toISOString();
    log.error(
      { err: error, next },
      'the core node refused the scores; the next ones are published when they are due, or in the next hour after a restart',
    );
    return false;
  }
}

/**
 * Publishes scores from this monitor's own measurements when an hour begins: every so many hours, and where that failed, as while the
 * core node was away, in the next hour in which it succeeds. What was refused for good is not computed again. A network with many nodes
 * has them computed elsewhere (`skerry score compute --publish`): it takes minutes then, in which this process should measure.
 */
export function createScoresPublisher(options: ScoresOptions): (startMs: number) => Promise<void> {
  const { core, nodeListOwner, hourSeconds, everyHours, tags, signal, log } = options;
  const publisher = core.signer.address;
  const source = { coreUrl: core.url, signal };
  /** Of the scores that were refused last, Unix seconds. */
  let refusedDue: number | undefined;
  return async (startMs) => {
    if (everyHours === 0) return;
    // What is dated before this hour is complete.
    const to = Math.floor(startMs / 1000);
    const due = to - (to % (everyHours * hourSeconds));
    if (due === refusedDue) return;
    if (due !== to && isPublishedSince(await readOwnLast(source, publisher, log), due)) return;
    const oldest = to - MAX_AGE_HOURS * hourSeconds;
    if (await isSilentSince(source, publisher, oldest)) return;
    const settings = { ...DEFAULT_SCORING_SETTINGS, hour_seconds: hourSeconds };
    const refused: RefusedMessage[] = [];
    const onRefused = (one: RefusedMessage) => void refused.push(one);
    const computed = await computeScoresOf(
      { ...source, onRefused },
      {
        period: { from: Math.max(0, to - settings.period_seconds), to },
        settings,
        publishers: [publisher],
        versions: await readVersionTable(source, publisher),
        registrations:
          nodeListOwner === undefined ? undefined : await readRegistrations(source, nodeListOwner),
        tags,
      },
    );
    if (refused.length > 0)
      log.warn(
        { count: refused.length, first: refused[0] },
        'measurements of this monitor cannot be verified as the core node gives them; they do not count',
      );
    if (computed.newest === null || computed.newest < oldest) return;
    // A monitor that is started again within an hour comes here again.
    const last = await readLastScores(source, [publisher]).catch((error: unknown) => {
      log.debug({ err: error }, 'what was published last could not be read');
      return undefined;
    });
    if (isPublished(last?.scores[0]?.content, computed.content)) return;
    if (!(await tryPublish(options, computed, due + everyHours * hourSeconds))) refusedDue = due;
  };
}
