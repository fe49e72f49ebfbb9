import { type CoreClient, requestJson } from '@skerry/client';
import { SCORES_POST_TYPE } from '@skerry/protocol';
import type { Earned } from './planning/trust.ts';

/** By node id. */
export type Scores = ReadonlyMap<string, Earned>;

interface PostsPage {
  readonly posts: readonly { readonly address: string; readonly content: unknown }[];
}

const NODE_ID = /^[0-9a-f]{64}$/;

const HOURS_MAX = 100_000;
/** Who published a score has measured; without a number it was an hour. */
const hoursOf = (value: unknown) =>
  Number.isSafeInteger(value) && (value as number) >= 0 ? Math.min(value as number, HOURS_MAX) : 1;

/** The scores of compute nodes in what a publisher published; what has not the form is left out. */
export function parseScores(content: unknown): Scores {
  const { scores } = (content ?? {}) as { scores?: { crn?: unknown } };
  const rows: unknown[] = Array.isArray(scores?.crn) ? scores.crn : [];
  return new Map(
    rows.flatMap((row): [string, Earned][] => {
      const {
        node_id: nodeId,
        total_score: score,
        measurements,
      } = (row ?? {}) as Readonly<Record<string, unknown>>;
      const isScore = typeof score === 'number' && score >= 0 && score <= 1;
      const { record_count: hours } = (measurements ?? {}) as { record_count?: unknown };
      return typeof nodeId === 'string' && NODE_ID.test(nodeId) && isScore
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
  const query = new URLSearchParams({
    types: SCORES_POST_TYPE,
    addresses: publishers.join(','),
    pagination: '1',
  });
  const { posts } = await requestJson<PostsPage>(`${core.url}/api/v0/posts.json?${query}`, { signal });
  return parseScores(posts[0]?.content);
}
