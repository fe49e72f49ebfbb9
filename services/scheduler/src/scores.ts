import { type CoreClient, call } from '@skerry/client';
import { fieldsOf, isItemHash64, leastHoursFor, SCORES_POST_TYPE } from '@skerry/protocol';
import { NETWORK_LISTS_API } from '@skerry/protocol/api/core/deployed/lists';
import { type Earned, SCORES_AGE_MAX_MS } from './planning/trust.ts';

/** By node id. */
export type Scores = ReadonlyMap<string, Earned>;

/**
 * Who published a score has measured; without a number it was an hour. Hours in which a node was silent earn nothing: no more count than
 * the score needs.
 */
function hoursOf(value: unknown, score: number): number {
  const isCount = Number.isSafeInteger(value) && (value as number) >= 0;
  return Math.min(isCount ? (value as number) : 1, leastHoursFor(score));
}

/** Unix milliseconds of the newest measurement behind scores; of scores that do not say, when they were published. */
function measuredMsOf(content: unknown, publishedSeconds: number): number {
  const { measured_at: measuredAt } = fieldsOf(content);
  const ms = typeof measuredAt === 'string' ? Date.parse(measuredAt) : Number.NaN;
  return Number.isNaN(ms) ? publishedSeconds * 1000 : ms;
}

/** The scores of compute nodes in what a publisher published; what has not the form is left out. */
export function parseScores(content: unknown): Scores {
  const { crn } = fieldsOf(fieldsOf(content).scores);
  const rows: unknown[] = Array.isArray(crn) ? crn : [];
  return new Map(
    rows.flatMap((row): [string, Earned][] => {
      const { node_id: nodeId, total_score: score, measurements } = fieldsOf(row);
      const isScore = typeof score === 'number' && score >= 0 && score <= 1;
      const { record_count: hours } = fieldsOf(measurements);
      return typeof nodeId === 'string' && isItemHash64(nodeId) && isScore
        ? [[nodeId, { score, hours: hoursOf(hours, score) }]]
        : [];
    }),
  );
}

/** Of scores that are all too old to count: the time of the newest measurement behind them, Unix milliseconds; null where any counts. */
export function outdatedMsOf(scores: Scores): number | null {
  let newestMs: number | null = null;
  for (const { outdatedMs } of scores.values()) {
    if (outdatedMs === undefined) return null;
    newestMs = Math.max(newestMs ?? outdatedMs, outdatedMs);
  }
  return newestMs;
}

/** What a publisher published last. */
interface Published {
  /** Unix seconds. */
  readonly time: number;
  readonly scores: Scores;
  readonly isOutdated: boolean;
}

/** @param nowMs Unix milliseconds */
async function readNewest(
  core: CoreClient,
  publisher: string,
  nowMs: number,
  signal: AbortSignal,
): Promise<Published> {
  const query = { types: SCORES_POST_TYPE, addresses: publisher, pagination: 1 };
  const { posts } = await call(core.url, NETWORK_LISTS_API.listNetworkPosts, { query }, { signal });
  const [post] = posts;
  const scores = parseScores(post?.content);
  const time = post?.time ?? 0;
  const measuredMs = measuredMsOf(post?.content, time);
  if (nowMs - measuredMs <= SCORES_AGE_MAX_MS) return { time, scores, isOutdated: false };
  const old = Array.from(
    scores,
    ([nodeId, earned]) => [nodeId, { ...earned, outdatedMs: measuredMs }] as const,
  );
  return { time, scores: new Map(old), isOutdated: true };
}

/**
 * What nodes earned: of each node what the newest of the publishers' last posts says that has it. One that is too old to count says
 * something only of a node that no other one has: nobody takes a score away by publishing without the node.
 * @param nowMs Unix milliseconds
 */
export async function readScores(
  core: CoreClient,
  publishers: readonly string[],
  nowMs: number,
  signal: AbortSignal,
): Promise<Scores> {
  const read: Published[] = [];
  for (const publisher of publishers) read.push(await readNewest(core, publisher, nowMs, signal));
  read.sort((a, b) => Number(a.isOutdated) - Number(b.isOutdated) || b.time - a.time);
  const found = new Map<string, Earned>();
  for (const { scores } of read)
    for (const [nodeId, earned] of scores) if (!found.has(nodeId)) found.set(nodeId, earned);
  return found;
}
