import { type Fields, fieldsOf } from '../json/fields.ts';
import { measuredHoursOf } from './counting.ts';

/**
 * The rows of published scores (docs/scoring.md, "What is published"), as all read them who go by them: schedulers, the command line and
 * the console. Small: the console's first load has it.
 */

/** What counts of a row; a field of another form is null. */
export interface ReadScore {
  /** 64 lower-case hexadecimal digits. */
  readonly node_id: string;
  /** 0..1. */
  readonly total_score: number;
  /** 0..1. */
  readonly decentralization: number | null;
  readonly measurements: {
    readonly total_nodes: number | null;
    readonly nodes_with_identical_asn: number | null;
    /** Hours; without a number it was one. */
    readonly record_count: number;
    /** 0..1, before corrections. */
    readonly total_score: number | null;
  };
}

export interface ReadComputeScore extends ReadScore {
  readonly status: string | null;
  /** What is no number is none of them. */
  readonly codes: readonly number[];
}

/** A row, or a whole list, that does not count. */
export interface OddScore {
  /** `crn[3]`, `ccn`. */
  readonly at: string;
  /** Null where the row names no node. */
  readonly node_id: string | null;
  readonly why: string;
}

export interface ReadScores {
  readonly ccn: readonly ReadScore[];
  readonly crn: readonly ReadComputeScore[];
  readonly odd: readonly OddScore[];
}

const NODE_ID = /^[0-9a-f]{64}$/;
const isPart = (value: unknown): value is number => typeof value === 'number' && value >= 0 && value <= 1;
const partOf = (value: unknown) => (isPart(value) ? value : null);
const countOf = (value: unknown) =>
  Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : null;
const idOf = ({ node_id: id }: Fields) => (typeof id === 'string' && NODE_ID.test(id) ? id : null);

function whyOdd(row: Fields, seen: ReadonlySet<string>): string | undefined {
  const id = idOf(row);
  if (id === null) return 'its node_id is not 64 lower-case hexadecimal digits';
  if (!isPart(row.total_score)) return 'its total_score is not a number from 0 to 1';
  return seen.has(id) ? 'an earlier row has the same node_id' : undefined;
}

function scoreOf(row: Fields): ReadScore {
  const measured = fieldsOf(row.measurements);
  return {
    node_id: row.node_id as string,
    total_score: row.total_score as number,
    decentralization: partOf(row.decentralization),
    measurements: {
      total_nodes: countOf(measured.total_nodes),
      nodes_with_identical_asn: countOf(measured.nodes_with_identical_asn),
      record_count: measuredHoursOf(measured.record_count),
      total_score: partOf(measured.total_score),
    },
  };
}

const computeScoreOf = (row: Fields): ReadComputeScore => ({
  ...scoreOf(row),
  status: typeof row.status === 'string' ? row.status : null,
  codes: Array.isArray(row.codes) ? row.codes.filter((code) => Number.isSafeInteger(code)) : [],
});

/** The rows of a list that count; the others are put into `odd`. */
function rowsOf(list: unknown, name: string, odd: OddScore[]): Fields[] {
  if (!Array.isArray(list)) {
    odd.push({ at: name, node_id: null, why: 'it is not a list' });
    return [];
  }
  const seen = new Set<string>();
  return list.flatMap((value: unknown, index) => {
    const row = fieldsOf(value);
    const why = whyOdd(row, seen);
    if (why === undefined) {
      seen.add(idOf(row)!);
      return [row];
    }
    odd.push({ at: `${name}[${index}]`, node_id: idOf(row), why });
    return [];
  });
}

/**
 * Reads `scores` of published scores. Never throws: a row without a `node_id` or a `total_score` does not count, and of rows of one node
 * in a list the first; they hide no others.
 */
export function readScoreRows(scores: unknown): ReadScores {
  const { ccn, crn } = fieldsOf(scores);
  const odd: OddScore[] = [];
  return {
    ccn: rowsOf(ccn, 'ccn', odd).map(scoreOf),
    crn: rowsOf(crn, 'crn', odd).map(computeScoreOf),
    odd,
  };
}
