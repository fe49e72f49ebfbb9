import { type PublishedScores, readLatestScores } from '@skerry/client';
import {
  AppError,
  hourSecondsOf,
  measuredHoursOf,
  measuredMsOf,
  outweighs,
  type ToldScore,
} from '@skerry/protocol';
import type { Context } from '../context.ts';

/**
 * What each of these publishers published last. Of who has published none there is nothing, nor of who signed something in another form,
 * which is noted: it says nothing of what the others measured.
 */
export async function readLastScores(
  { coreUrl, output }: Pick<Context, 'coreUrl' | 'output'>,
  publishers: readonly string[],
): Promise<PublishedScores[]> {
  const last: PublishedScores[] = [];
  for (const publisher of publishers) {
    try {
      const scores = await readLatestScores({ coreUrl }, [publisher]);
      if (scores) last.push(scores);
    } catch (error) {
      if (!(error instanceof AppError) || error.code !== 'INVALID_CONTENT') throw error;
      output.note(`the last scores of ${publisher} do not count: ${error.message}`);
    }
  }
  return last;
}

/** Of what publishers published last, the newest. */
export const newestOf = (last: readonly PublishedScores[]): PublishedScores | undefined =>
  last.toSorted((one, other) => other.time - one.time)[0];

function findTold({ content, time }: PublishedScores, nodeId: string): ToldScore | undefined {
  const { ccn, crn } = content.scores;
  const row = [...ccn, ...crn].find(({ node_id: id }) => id === nodeId);
  return (
    row && {
      score: row.total_score,
      hours: measuredHoursOf(row.measurements.record_count),
      hourSeconds: hourSecondsOf(content.settings),
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
  return counting?.scores ?? newestOf(last);
}
