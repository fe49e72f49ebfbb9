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
function measuredMsOf(content: unknown, publishedSeconds: number | undefined): number {
  const { measured_at: measuredAt } = fieldsOf(content);
  const ms = typeof measuredAt === 'string' ? Date.parse(measuredAt) : Number.NaN;
  return Number.isNaN(ms) ? (publishedSeconds ?? 0) * 1000 : ms;
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

/** The newest scores that any of the publishers published; none where there are none. @param nowMs Unix milliseconds */
export async function readScores(
  core: CoreClient,
  publishers: readonly string[],
  nowMs: number,
  signal: AbortSignal,
): Promise<Scores> {
  if (publishers.length === 0) return new Map();
  const query = { types: SCORES_POST_TYPE, addresses: publishers.join(','), pagination: 1 };
  const { posts } = await call(core.url, NETWORK_LISTS_API.listNetworkPosts, { query }, { signal });
  const [post] = posts;
  const scores = parseScores(post?.content);
  const measuredMs = measuredMsOf(post?.content, post?.time);
  if (nowMs - measuredMs <= SCORES_AGE_MAX_MS) return scores;
  return new Map(Array.from(scores, ([nodeId, earned]) => [nodeId, { ...earned, outdatedMs: measuredMs }]));
}
