import type { ReadScore, ReadScores } from '@skerry/protocol';
import { plainText, renderTable } from '../output/text.ts';

export const percent = (value: number) => `${(value * 100).toFixed(2)} %`;

const rowsOf = (
  kind: string,
  scores: readonly (ReadScore & { readonly codes?: readonly number[] })[],
): string[][] =>
  scores.map(({ node_id: id, total_score: total, decentralization, measurements, codes = [] }) => [
    kind,
    plainText(id),
    percent(total),
    decentralization === null ? '' : percent(decentralization),
    String(measurements.record_count),
    codes.join(','),
  ]);

/** A table with a row for each node; empty where there is none. */
export const renderScores = ({ ccn, crn }: Pick<ReadScores, 'ccn' | 'crn'>): string =>
  renderTable(
    ['KIND', 'NODE', 'SCORE', 'DECENTRALIZATION', 'HOURS', 'CODES'],
    [...rowsOf('core', ccn), ...rowsOf('compute', crn)],
  );
