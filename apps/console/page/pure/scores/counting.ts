import { hourSecondsOf, measuredMsOf, outweighs, type ToldScore } from '@skerry/protocol/scoring/counting';
import type { ComputeScore, CoreScore, ScoresMessage } from '../../data/answers.ts';

/** Of every node the score that counts. */
export interface CountingScores {
  readonly core: readonly CoreScore[];
  readonly compute: readonly ComputeScore[];
  /** By node id: which message says it. */
  readonly messages: ReadonlyMap<string, ScoresMessage>;
}

type Row =
  | { readonly kind: 'core'; readonly score: CoreScore }
  | { readonly kind: 'compute'; readonly score: ComputeScore };

interface Told {
  readonly row: Row;
  readonly told: ToldScore;
  readonly message: ScoresMessage;
}

function listTold(message: ScoresMessage): Told[] {
  const { measured_at: measuredAt, settings, scores } = message.content.content;
  const hourSeconds = hourSecondsOf(settings);
  const measuredMs = measuredMsOf(measuredAt, message.time);
  const rows: Row[] = [
    ...scores.ccn.map((score) => ({ kind: 'core' as const, score })),
    ...scores.crn.map((score) => ({ kind: 'compute' as const, score })),
  ];
  return rows.map((row) => {
    const { total_score: score, measurements } = row.score;
    return { row, message, told: { score, hours: measurements.record_count, hourSeconds, measuredMs } };
  });
}

/** Messages by who signed them, in the order in which they came. */
export function bySender(messages: readonly ScoresMessage[]): ReadonlyMap<string, readonly ScoresMessage[]> {
  const senders = new Map<string, ScoresMessage[]>();
  for (const message of messages) {
    const own = senders.get(message.sender);
    if (own) own.push(message);
    else senders.set(message.sender, [message]);
  }
  return senders;
}

/**
 * Of each node the score that counts among those that its monitors published last, by the rule of schedulers.
 * @param messages newest first
 * @param nowMs Unix milliseconds
 */
export function countingScores(messages: readonly ScoresMessage[], nowMs: number): CountingScores {
  const found = new Map<string, Told>();
  for (const [last] of bySender(messages).values())
    for (const one of listTold(last!)) {
      const { node_id: id } = one.row.score;
      const other = found.get(id);
      if (!other || outweighs(one.told, other.told, nowMs)) found.set(id, one);
    }
  const rows = Array.from(found.values(), ({ row }) => row);
  return {
    core: rows.flatMap((row) => (row.kind === 'core' ? [row.score] : [])),
    compute: rows.flatMap((row) => (row.kind === 'compute' ? [row.score] : [])),
    messages: new Map(Array.from(found, ([id, { message }]) => [id, message])),
  };
}
