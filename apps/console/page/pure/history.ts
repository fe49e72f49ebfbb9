import type { ScoresMessage } from '../data/answers.ts';
import type { Point } from './chart.ts';

type Score = ScoresMessage['content']['content']['scores']['ccn'][number];

/** A score and what it is made of. */
export const SCORE_PARTS = [
  ['score', ({ total_score: total }: Score) => total],
  ['before corrections', ({ measurements }: Score) => measurements.total_score],
  ['decentralization', ({ decentralization }: Score) => decentralization],
] as const;

/**
 * A part of a node's score in each of the messages of one monitor, oldest first. Times are Unix milliseconds.
 * @param sender whose; undefined: whoever's
 */
export function scoreHistory(
  messages: readonly ScoresMessage[],
  nodeId: string,
  partOf: (score: Score) => number | null,
  sender?: string,
): Point[] {
  return messages
    .filter((message) => sender === undefined || message.sender === sender)
    .map(({ time, content }) => {
      const { ccn, crn } = content.content.scores;
      const own = [...ccn, ...crn].find((one) => one.node_id === nodeId);
      return { x: time * 1_000, y: own ? partOf(own) : null };
    })
    .sort((one, other) => one.x - other.x);
}

const numberOf = (value: unknown) => (typeof value === 'number' && Number.isFinite(value) ? value : null);

/** One of the numbers that were measured, oldest first; null where it could not be. */
export function measuredHistory(rows: readonly Readonly<Record<string, unknown>>[], field: string): Point[] {
  return rows
    .flatMap((row) => {
      const at = numberOf(row.measured_at);
      return at === null ? [] : [{ x: at * 1_000, y: numberOf(row[field]) }];
    })
    .sort((one, other) => one.x - other.x);
}

/** Latencies that a score is made of, by kind of node, and what they are called. */
export const LATENCIES = {
  compute: [
    ['base_latency', 'connect'],
    ['diagnostic_vm_latency', 'program'],
    ['full_check_latency', 'whole check'],
  ],
  core: [
    ['base_latency', 'connect'],
    ['metrics_latency', 'metrics'],
    ['aggregate_latency', 'aggregate'],
    ['file_download_latency', 'file'],
  ],
} as const;
