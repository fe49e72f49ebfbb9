import {
  computeScoresOf,
  type OnHour,
  type PublishedScores,
  publishScores,
  type RefusedMessage,
  readRegistrations,
  readSignedReleases,
  readTerms,
  readVersionTable,
  type ScoresPublication,
  type ScoringTerms,
  saysNothing,
  type Verification,
  verifyScores,
} from '@skerry/client';
import {
  AppError,
  addRelease,
  type ComputeScore,
  canonicalJson,
  DEFAULT_SCORING_SETTINGS,
  type HourDetail,
  parseItemHash,
  parseScoringSettings,
  parseTypedEvmAddress,
  VERSIONS_KEY,
  type VersionTable,
} from '@skerry/protocol';
import type { Context } from '../context.ts';
import { EXIT } from '../exit-codes.ts';
import { readContent } from '../messages/content.ts';
import { noteVerdict, verdictFields } from '../messages/verdict.ts';
import { isDay, isMilliseconds, readIsoDate } from '../moments.ts';
import { parseList } from '../options.ts';
import { plainText, renderFields, renderTime } from '../output/text.ts';
import { describeOdd, newestFirst, readLast, scoresFor } from './last.ts';
import { findNodeId } from './node-id.ts';
import { publishersOf } from './publishers.ts';
import { percent, renderScores } from './render.ts';

export interface ScoreOptions {
  readonly from?: string;
  readonly to?: string;
  readonly publisher?: string;
  readonly versions?: string;
  readonly nodeList?: string;
  readonly settings?: string;
  readonly tags?: string;
}

export interface ComputeOptions extends ScoreOptions {
  readonly publish?: boolean;
  readonly maxAge: number;
}

/** Of messages that were refused, those that are told to people; programs get all. */
const REFUSED_SHOWN = 10;
/** Of the releases that are signed, the last. */
const RELEASES_SHOWN = 10;

/** Unix seconds, or a date that ISO 8601 knows. Whole seconds, so that the published text says exactly the same. */
export function parseMoment(text: string): number {
  if (isMilliseconds(text))
    throw new AppError('INVALID_PARAMETERS', `${text} is in milliseconds; Unix seconds are expected`);
  const seconds = /^[0-9]{1,11}$/.test(text) ? Number(text) : readIsoDate(text, 'T00:00Z') / 1000;
  if (!Number.isFinite(seconds) || seconds < 0)
    throw new AppError(
      'INVALID_PARAMETERS',
      `${JSON.stringify(text)} is neither Unix seconds nor an ISO 8601 date`,
    );
  return Math.floor(seconds);
}

/** Whether nothing was asked for that the newest published scores would have to be computed with otherwise. */
const isAsPublished = ({ from, to, versions, nodeList, settings }: ScoreOptions) =>
  [from, to, versions, nodeList, settings].every((option) => option === undefined);

/** The settings of the newest of these scores that have some in their form, else of the newest: what others have is noted. */
function settingsOf({ output }: Context, last: readonly PublishedScores[]): object | undefined {
  const newest = newestFirst(last);
  for (const { itemHash, content } of newest) {
    try {
      return parseScoringSettings(content.settings);
    } catch (error) {
      output.note(`the settings of ${itemHash} are not used: ${plainText((error as AppError).message)}`);
    }
  }
  return newest[0]?.content.settings;
}

/**
 * What is not said is as these publishers have it in the newest scores that they published: the length of their hour
 * above all, without which the same measurements make other hours.
 * @param known what these publishers published last, where it was read already
 */
async function readTermsOf(
  context: Context,
  options: ScoreOptions,
  known?: readonly PublishedScores[],
): Promise<ScoringTerms> {
  const { coreUrl, stdin } = context;
  const publishers = await publishersOf(context, options.publisher);
  const given =
    options.settings === undefined
      ? {}
      : await readContent({ option: '--settings', given: options.settings }, stdin);
  const theirs = settingsOf(context, known ?? (await readLast(context, publishers)).scores);
  const settings = parseScoringSettings({ ...(theirs ?? DEFAULT_SCORING_SETTINGS), ...(given as object) });
  const to = options.to === undefined ? Math.floor(Date.now() / 1000) : parseMoment(options.to);
  const from = options.from === undefined ? to - settings.period_seconds : parseMoment(options.from);
  const owner = options.versions === undefined ? publishers[0]! : parseTypedEvmAddress(options.versions);
  return {
    period: { from: Math.max(0, from), to },
    settings,
    publishers,
    versions: await readVersionTable({ coreUrl }, owner),
    registrations:
      options.nodeList === undefined
        ? undefined
        : await readRegistrations({ coreUrl }, parseTypedEvmAddress(options.nodeList)),
    tags: parseList(options.tags ?? ''),
  };
}

const counted = (verified: number) => `read ${verified} measurements and verified their signatures`;
const refusedFields = (refused: readonly RefusedMessage[]): [string, string | undefined][] =>
  refused.length === 0
    ? []
    : [
        ['not signed as given', `${refused.length}; ignored`],
        ...refused
          .slice(0, REFUSED_SHOWN)
          .map(({ itemHash, message }): [string, string] => [plainText(itemHash), plainText(message)]),
      ];

/** Computes from what the core node gives, every signature verified; tells how far it is. */
async function computeHere({ coreUrl, output }: Context, terms: ScoringTerms, onHour?: OnHour) {
  using progress = output.progress();
  const refused: RefusedMessage[] = [];
  const source = {
    coreUrl,
    onProgress: (verified: number) => progress.show(counted(verified)),
    onRefused: (one: RefusedMessage) => void refused.push(one),
  };
  return { computed: await computeScoresOf(source, terms, onHour), refused };
}

/** Computes scores from the messages of a core node; publishes them where asked to. */
export async function computeAndShow(context: Context, options: ComputeOptions): Promise<number> {
  const { output } = context;
  const terms = await readTermsOf(context, options);
  const { computed, refused } = await computeHere(context, terms);
  const { content, newest } = computed;
  let published: ScoresPublication | undefined;
  if (options.publish) {
    if (refused.length > 0)
      throw new AppError(
        'INVALID_SIGNATURE',
        `nothing was published: ${refused.length} measurements from ${context.coreUrl} have no valid signature (the first: ${refused[0]!.message})`,
      );
    if (newest === null || newest < terms.period.to - options.maxAge)
      throw new AppError(
        'METRICS_TOO_OLD',
        `the newest measurements are from ${content.measured_at ?? 'never'}`,
      );
    published = await publishScores(await context.openWriter(), computed);
    noteVerdict(output, published.message_status, published.reason);
  }
  const table = renderScores(content.scores);
  const facts = renderFields([
    ['period', `${content.period.from_date} to ${content.period.to_date}`],
    ['messages', content.inputs.metrics.count],
    ['scores_hash', content.scores_hash],
    ['item_hash', published?.item_hash],
    ...refusedFields(refused),
  ]);
  output.result(
    { ...content, ...(published ?? { item_hash: null }), refused },
    table === '' ? facts : `${table}\n\n${facts}`,
  );
  return refused.length === 0 ? EXIT.ok : EXIT.failed;
}

function verdictOf({ isSame, refused, published, computed }: Verification, coreUrl: string): string {
  if (refused.length > 0) return `${coreUrl} returned measurements without a valid signature`;
  if (isSame) return 'the same scores, every signature verified';
  return published === computed ? 'the same scores, but under a wrong hash' : 'different scores';
}

/** Computes published scores again. */
export async function verifyAndShow(context: Context, hash: string): Promise<number> {
  const { reader, output, coreUrl } = context;
  using progress = output.progress();
  const result = await verifyScores(reader, parseItemHash(hash), (verified) =>
    progress.show(counted(verified)),
  );
  const text = renderFields([
    ['verdict', verdictOf(result, coreUrl)],
    ['signed by', result.publisher],
    ['measured by', result.publishers.map(plainText).join(', ')],
    ['messages', result.count],
    ['published', result.published],
    ['computed', result.computed],
    ['missing here', result.missing.length > 0 ? result.missing.join(' ') : undefined],
    ['only here', result.extra.length > 0 ? result.extra.join(' ') : undefined],
    ['nodes that differ', result.different.length > 0 ? result.different.join(' ') : undefined],
    ['rows in another form', describeOdd(result.odd)],
    ...refusedFields(result.refused),
  ]);
  output.result(result, text);
  return result.isSame ? EXIT.ok : EXIT.failed;
}

/** What an hour took from the score's weighted sum, in words. */
function reasonOf({ latencies, quality, isVersionValid, version }: HourDetail): string {
  const missing = Object.entries(latencies).flatMap(([field, value]) => (value === null ? [field] : []));
  if (missing.length > 0) return `no ${missing.join(', no ')}`;
  if (!isVersionValid) return `version ${plainText(version ?? 'unknown')} does not count`;
  if (quality === 1) return '';
  return Object.entries(latencies)
    .map(([field, value]) => `${field} ${value!.toFixed(3)} s`)
    .join(', ');
}

/**
 * The scores that count for a node, and their terms. Those whose terms nobody can go by are noted, and the ones that would count
 * without them taken. Throws where no terms can be gone by.
 */
async function readCounting(
  { reader, output }: Context,
  last: readonly PublishedScores[],
  nodeId: string,
): Promise<{ readonly terms: ScoringTerms; readonly scores: string } | undefined> {
  const nowMs = Date.now();
  let left = last;
  let failure: AppError | undefined;
  while (left.length > 0) {
    const counting = scoresFor(left, nodeId, nowMs)!;
    const { itemHash, publisher, signed } = counting;
    try {
      return { terms: await readTerms(reader, signed), scores: itemHash };
    } catch (error) {
      if (!(error instanceof AppError) || saysNothing(error)) throw error;
      output.note(`${itemHash} of ${publisher} cannot be explained: ${plainText(error.message)}`);
      failure ??= error;
      left = left.filter((one) => one !== counting);
    }
  }
  if (failure) throw failure;
  return undefined;
}

/** Which node to explain, and the terms to do it with: those of the scores that count for it, unless others are asked for. */
async function readExplained(context: Context, node: string, options: ScoreOptions) {
  const { scores: last } = await readLast(context, await publishersOf(context, options.publisher));
  const nodeId = await findNodeId(context, last, node);
  const counting = isAsPublished(options) ? await readCounting(context, last, nodeId) : undefined;
  return { nodeId, ...(counting ?? { terms: await readTermsOf(context, options, last), scores: undefined }) };
}

/** Hour by hour, newest first: what it was worth to a node and what cost it points. */
export async function explainAndShow(context: Context, node: string, options: ScoreOptions): Promise<number> {
  const { nodeId, terms, scores } = await readExplained(context, node, options);
  const hours: ({ kind: string; lost: number } & HourDetail)[] = [];
  const { computed, refused } = await computeHere(context, terms, (kind, id, detail) => {
    if (id === nodeId) hours.push({ kind, lost: detail.weight - detail.gained, ...detail });
  });
  const { content } = computed;
  if (hours.length === 0)
    throw new AppError('NODE_NOT_FOUND', `nobody measured node ${nodeId} in this period`);
  const score = [...content.scores.ccn, ...content.scores.crn].find((one) => one.node_id === nodeId) ?? null;
  const rows = hours.map((hour) => [
    renderTime(hour.hour),
    percent(hour.quality),
    hour.isVersionValid ? 'yes' : 'no',
    percent(hour.weight),
    percent(hour.lost),
    reasonOf(hour),
  ]);
  const table = context.output.table(
    ['HOUR', 'QUALITY', 'VERSION', 'WEIGHT', 'LOST', 'WHY'],
    rows,
    'no hours',
  );
  const unseen = 1 - hours.reduce((sum, hour) => sum + hour.weight, 0);
  const facts = renderFields([
    ['score', score === null ? 'none: its autonomous system is unknown' : percent(score.total_score)],
    ['decentralization', score === null ? undefined : percent(score.decentralization)],
    ['hours', hours.length],
    ['weight of hours not yet measured', percent(unseen)],
    ['codes', score !== null && 'codes' in score ? (score as ComputeScore).codes.join(', ') : undefined],
    ['published as', scores],
    ...refusedFields(refused),
  ]);
  context.output.result(
    { node_id: nodeId, score, hours, scores: scores ?? null, refused },
    `${table}\n\n${facts}`,
  );
  return refused.length === 0 ? EXIT.ok : EXIT.failed;
}

/** A day that the calendar has. Throws INVALID_PARAMETERS. */
export function parseDay(text: string): string {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text) || !isDay(text))
    throw new AppError('INVALID_PARAMETERS', `a release day is YYYY-MM-DD in UTC, not "${text}"`);
  return text;
}

export interface ReleaseOptions {
  readonly on?: string;
  readonly prerelease?: boolean;
}

/** The releases that are signed again with a new one. Throws UNEXPECTED_ANSWER where they are not those that were signed. */
async function readProvenReleases(coreUrl: string, owner: string, software: string) {
  const table = await readVersionTable({ coreUrl }, owner);
  const told = Object.hasOwn(table, software) ? table[software]! : {};
  const signed = (await readSignedReleases({ coreUrl }, owner, software)) ?? {};
  if (canonicalJson(told) === canonicalJson(signed)) return signed;
  throw new AppError(
    'UNEXPECTED_ANSWER',
    `nothing was signed: what ${coreUrl} tells of the releases of ${software} is not what ${owner} signed`,
  );
}

/** Tells what is signed: a release that the core node hides is not in the table any more. */
function describeReleases(software: string, releases: VersionTable[string]): string {
  const names = Object.keys(releases).map(plainText);
  const shown = [...(names.length > RELEASES_SHOWN ? ['…'] : []), ...names.slice(-RELEASES_SHOWN)];
  return `you sign ${names.length} releases of ${plainText(software)}: ${shown.join(', ')}`;
}

/** Publishes a release in the signer's version table. */
export async function publishRelease(
  context: Context,
  software: string,
  version: string,
  options: ReleaseOptions,
): Promise<void> {
  const date = parseDay(options.on ?? new Date().toISOString().slice(0, 10));
  const writer = await context.openWriter();
  const known = await readProvenReleases(context.coreUrl, writer.signer.address, software);
  const content = addRelease({ [software]: known }, software, version, date, options.prerelease === true);
  context.output.note(describeReleases(software, content[software]!));
  const answer = await writer.postMessage({ type: 'AGGREGATE', content: { key: VERSIONS_KEY, content } });
  context.output.result({ ...answer, ...verdictFields(answer), versions: content }, answer.item_hash);
}
