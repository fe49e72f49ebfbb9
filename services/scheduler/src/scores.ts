import { type CoreClient, call } from '@skerry/client';
import {
  fieldsOf,
  hourSecondsOf,
  isOutdated,
  leastHoursFor,
  measuredMsOf,
  outweighs,
  readScoreRows,
  SCORES_POST_TYPE,
  type ToldScore,
} from '@skerry/protocol';
import { NETWORK_LISTS_API } from '@skerry/protocol/api/core/deployed/lists';
import type { Earned } from './planning/trust.ts';

/** By node id. */
export type Scores = ReadonlyMap<string, Earned>;

/**
 * What a score earned its node. Hours in which it was silent earn nothing: no more count than the score needs.
 * @param nowMs Unix milliseconds
 */
export function earnedBy(told: ToldScore, nowMs: number): Earned {
  const { score, measuredMs } = told;
  const earned = { score, hours: Math.min(told.hours, leastHoursFor(score)) };
  return isOutdated(told, nowMs) ? { ...earned, outdatedMs: measuredMs } : earned;
}

/**
 * The scores of compute nodes in what a publisher published, by node id; what has not the form is left out.
 * @param publishedSeconds Unix seconds
 */
export function parseScores(content: unknown, publishedSeconds: number): ReadonlyMap<string, ToldScore> {
  const { measured_at: measuredAt, settings, scores } = fieldsOf(content);
  const hourSeconds = hourSecondsOf(settings);
  const measuredMs = measuredMsOf(measuredAt, publishedSeconds);
  return new Map(
    readScoreRows(scores).crn.map(
      ({ node_id: nodeId, total_score: score, measurements }) =>
        [nodeId, { score, hours: measurements.record_count, hourSeconds, measuredMs }] as const,
    ),
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
async function readLast(
  core: CoreClient,
  publisher: string,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, ToldScore>> {
  const query = { types: SCORES_POST_TYPE, addresses: publisher, pagination: 1 };
  const { posts } = await call(core.url, NETWORK_LISTS_API.listNetworkPosts, { query }, { signal });
  return parseScores(posts[0]?.content, posts[0]?.time ?? 0);
}

/**
 * What nodes earned: of each node what that publisher says whose word counts (docs/scoring.md, "Which score counts").
 * @param nowMs Unix milliseconds
 */
export async function readScores(
  core: CoreClient,
  publishers: readonly string[],
  nowMs: number,
  signal: AbortSignal,
): Promise<Scores> {
  const found = new Map<string, ToldScore>();
  for (const publisher of publishers)
    for (const [nodeId, told] of await readLast(core, publisher, signal)) {
      const other = found.get(nodeId);
      if (!other || outweighs(told, other, nowMs)) found.set(nodeId, told);
    }
  return new Map(Array.from(found, ([nodeId, told]) => [nodeId, earnedBy(told, nowMs)]));
}
