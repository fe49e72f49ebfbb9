import { type CoreClient, call } from '@skerry/client';
import { fieldsOf, isItemHash64, SCORES_POST_TYPE } from '@skerry/protocol';
import { NETWORK_LISTS_API } from '@skerry/protocol/api/core/deployed/lists';
import type { Earned } from './planning/trust.ts';

/** By node id. */
export type Scores = ReadonlyMap<string, Earned>;

const HOURS_MAX = 100_000;
/** Who published a score has measured; without a number it was an hour. */
const hoursOf = (value: unknown) =>
  Number.isSafeInteger(value) && (value as number) >= 0 ? Math.min(value as number, HOURS_MAX) : 1;

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
        ? [[nodeId, { score, hours: hoursOf(hours) }]]
        : [];
    }),
  );
}

/** The newest scores that any of the publishers published; none where there are none. */
export async function readScores(
  core: CoreClient,
  publishers: readonly string[],
  signal: AbortSignal,
): Promise<Scores> {
  if (publishers.length === 0) return new Map();
  const query = { types: SCORES_POST_TYPE, addresses: publishers.join(','), pagination: 1 };
  const { posts } = await call(core.url, NETWORK_LISTS_API.listNetworkPosts, { query }, { signal });
  return parseScores(posts[0]?.content);
}
