import { type LastScores, type PublishedScores, readLastScores } from '@skerry/client';
import { hourSecondsOf, measuredMsOf, type OddScore, outweighs, type ToldScore } from '@skerry/protocol';
import type { Context } from '../context.ts';
import { plainText } from '../output/text.ts';

/** Of rows that do not count, those that are told to people. */
const ODD_SHOWN = 10;

/** Which rows do not count, and why; undefined where all do. */
export function describeOdd(odd: readonly OddScore[]): string | undefined {
  if (odd.length === 0) return undefined;
  const shown = odd
    .slice(0, ODD_SHOWN)
    .map(({ at, node_id: id, why }) => `${at}${id === null ? '' : ` (node ${id})`}: ${why}`);
  return [...shown, ...(odd.length > ODD_SHOWN ? [`and ${odd.length - ODD_SHOWN} more`] : [])].join('; ');
}

/**
 * What each of these publishers published last. What does not count of it, a whole publication or a row, is noted: it says nothing of
 * the others.
 */
export async function readLast(
  { coreUrl, output }: Pick<Context, 'coreUrl' | 'output'>,
  publishers: readonly string[],
): Promise<LastScores> {
  const last = await readLastScores({ coreUrl }, publishers);
  for (const { publisher, error } of last.odd)
    output.note(`the last scores of ${publisher} do not count: ${plainText(error.message)}`);
  for (const { itemHash, odd } of last.scores) {
    const rows = describeOdd(odd);
    if (rows) output.note(`rows of ${itemHash} do not count: ${rows}`);
  }
  return last;
}

/** What publishers published last, the newest first. */
export const newestFirst = (last: readonly PublishedScores[]): PublishedScores[] =>
  last.toSorted((one, other) => other.time - one.time);

function findTold({ content, time }: PublishedScores, nodeId: string): ToldScore | undefined {
  const { ccn, crn } = content.scores;
  const row = [...ccn, ...crn].find(({ node_id: id }) => id === nodeId);
  return (
    row && {
      score: row.total_score,
      hours: row.measurements.record_count,
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
  return counting?.scores ?? newestFirst(last)[0];
}
