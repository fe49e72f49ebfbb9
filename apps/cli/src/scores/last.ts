import { type PublishedScores, readLatestScores } from '@skerry/client';
import { measuredHoursOf, measuredMsOf, outweighs, type ToldScore } from '@skerry/protocol';

/** What each of these publishers published last; of who has published none there is nothing. */
export async function readLastScores(
  coreUrl: string,
  publishers: readonly string[],
): Promise<PublishedScores[]> {
  const last: PublishedScores[] = [];
  for (const publisher of publishers) {
    const scores = await readLatestScores({ coreUrl }, [publisher]);
    if (scores) last.push(scores);
  }
  return last;
}

function findTold({ content, time }: PublishedScores, nodeId: string): ToldScore | undefined {
  const { ccn, crn } = content.scores;
  const row = [...ccn, ...crn].find(({ node_id: id }) => id === nodeId);
  return (
    row && {
      score: row.total_score,
      hours: measuredHoursOf(row.measurements.record_count),
      measuredMs: measuredMsOf(content.measured_at, time),
    }
  );
}

/**
 * Of what publishers published last, the scores that count for a node, by the rule of schedulers; where none of them has the node, the
 * newest.
 * @param nowMs Unix milliseconds
 */
export function scoresFor(
  last: readonly PublishedScores[],
  nodeId: string,
  nowMs: number,
): PublishedScores | undefined {
  let counting: { readonly scores: PublishedScores; readonly told: ToldScore } | undefined;
  for (const scores of last) {
    const told = findTold(scores, nodeId);
    if (told && (!counting || outweighs(told, counting.told, nowMs))) counting = { scores, told };
  }
  return counting?.scores ?? last.toSorted((one, other) => other.time - one.time)[0];
}
