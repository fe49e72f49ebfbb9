import type { ScoresMessage } from '../../data/answers.ts';
import { bySender, countingScores } from './counting.ts';

/** A node whose score is much lower than it was lately. */
export interface Fall {
  readonly node: string;
  readonly kind: 'core' | 'compute';
  /** The best score among those that were looked at. */
  readonly from: number;
  /** Null: its monitor publishes none any more. */
  readonly to: number | null;
  /** When the first of the low scores was published, Unix milliseconds. */
  readonly sinceMs: number;
}

/** A score moves a little each hour: below this part of its best it has fallen. */
const FALLEN_PART = 0.75;
/** What never had more than this has nothing to lose. */
const SCORE_LEAST = 0.1;

interface Told {
  readonly kind: Fall['kind'];
  readonly total: number;
}

function scoresOf({ content }: ScoresMessage): ReadonlyMap<string, Told> {
  const { ccn, crn } = content.content.scores;
  return new Map<string, Told>([
    ...ccn.map((one) => [one.node_id, { kind: 'core', total: one.total_score }] as const),
    ...crn.map((one) => [one.node_id, { kind: 'compute', total: one.total_score }] as const),
  ]);
}

/** Nodes whose score fell, of what one monitor has said. @param messages newest first */
function fallsOf(messages: readonly ScoresMessage[]): Fall[] {
  const told = messages.map((message) => ({ atMs: message.time * 1_000, scores: scoresOf(message) }));
  const best = new Map<string, Told>();
  for (const { scores } of told)
    for (const [node, one] of scores) if (one.total > (best.get(node)?.total ?? 0)) best.set(node, one);
  return [...best].flatMap(([node, { kind, total: from }]) => {
    const isLow = (scores: ReadonlyMap<string, Told>) => (scores.get(node)?.total ?? 0) < from * FALLEN_PART;
    const firstWell = told.findIndex(({ scores }) => !isLow(scores));
    if (from < SCORE_LEAST || firstWell <= 0) return [];
    const to = told[0]!.scores.get(node)?.total ?? null;
    return [{ node, kind, from, to, sinceMs: told[firstWell - 1]!.atMs }];
  });
}

/**
 * Nodes whose score fell, of each by the monitor whose score of it counts. One that no monitor scores any more is told once.
 * @param messages newest first
 * @param nowMs Unix milliseconds
 */
export function findFalls(messages: readonly ScoresMessage[], nowMs: number): Fall[] {
  const counting = countingScores(messages, nowMs).messages;
  const falls = new Map<string, Fall>();
  for (const [sender, own] of bySender(messages))
    for (const fall of fallsOf(own)) {
      const counts = counting.get(fall.node)?.sender;
      if (counts === undefined ? !falls.has(fall.node) : counts === sender) falls.set(fall.node, fall);
    }
  return [...falls.values()];
}
