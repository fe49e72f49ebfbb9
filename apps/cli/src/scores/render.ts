import type { ComputeScore, CoreScore, ScoreView } from '@skerry/protocol';
import { plainText, renderTable } from '../output/text.ts';

export const percent = (value: number) => `${(value * 100).toFixed(2)} %`;

const rowsOf = (kind: string, scores: readonly (CoreScore | ComputeScore)[]): string[][] =>
  scores.map((score) => [
    kind,
    plainText(score.node_id),
    percent(score.total_score),
    percent(score.decentralization),
    String(score.measurements.record_count),
    'codes' in score ? score.codes.join(',') : '',
  ]);

/** A table with a row for each node; empty where there is none. */
export const renderScores = ({ ccn, crn }: ScoreView): string =>
  renderTable(
    ['KIND', 'NODE', 'SCORE', 'DECENTRALIZATION', 'HOURS', 'CODES'],
    [...rowsOf('core', ccn), ...rowsOf('compute', crn)],
  );
