import { AppError } from '../errors.ts';
import { sha256Hex } from '../hash.ts';
import type { MetricsReport, NodeKind, NodeRecord } from '../measurement/report.ts';
import { type FoldContext, NodeFold } from './node-fold.ts';
import { type ScoreView, scoresOf } from './scores.ts';

/** A metrics message of a publisher that counts. */
export interface MetricsMessage {
  readonly itemHash: string;
  /** The message's own time, Unix seconds: what decides about its hour. */
  readonly time: number;
  readonly report: MetricsReport;
}

/** Unix seconds: inclusive, exclusive. */
export interface Period {
  readonly from: number;
  readonly to: number;
}

export interface ScoringInput extends Omit<FoldContext, 'to'> {
  readonly period: Period;
}

export interface ScoringResult {
  readonly scores: ScoreView;
  /** The item hashes that counted, in order. */
  readonly metrics: readonly string[];
  /** Unix seconds of the newest of them, or null. */
  readonly newest: number | null;
}

interface Hour {
  readonly hour: number;
  readonly seen: Set<string>;
  readonly nodes: Readonly<Record<NodeKind, Map<string, NodeRecord[]>>>;
}

const KINDS: readonly NodeKind[] = ['core', 'compute'];

/**
 * Scores in one pass over the messages, hours newest first; within an hour in any order. It keeps the records of one
 * hour, a few numbers for each node, and one hash for each message. Everything is computed in whole numbers, so that the
 * same messages, version table and period give the same bytes everywhere (docs/scoring.md).
 */
export class Scorer {
  readonly #context: FoldContext;
  readonly #period: Period;
  readonly #folds: Readonly<Record<NodeKind, Map<string, NodeFold>>> = {
    core: new Map(),
    compute: new Map(),
  };
  readonly #metrics: string[] = [];
  #newest: number | null = null;
  #hour: Hour | undefined;

  constructor(input: ScoringInput) {
    const { period, ...context } = input;
    if (!(period.from < period.to)) throw new AppError('INVALID_PARAMETERS', 'the period is empty');
    this.#period = period;
    this.#context = { ...context, to: period.to };
  }

  /** Takes a message in; one outside the period does not count. Throws INVALID_PARAMETERS for one of an hour that is over. */
  add({ itemHash, time, report }: MetricsMessage): void {
    if (!(time >= this.#period.from && time < this.#period.to)) return;
    const length = this.#context.settings.hour_seconds;
    const beginning = Math.floor(time / length) * length;
    if (this.#hour && beginning > this.#hour.hour)
      throw new AppError('INVALID_PARAMETERS', `the message ${itemHash} is newer than one before it`);
    if (this.#hour?.hour !== beginning) this.#beginHour(beginning);
    const { seen, nodes } = this.#hour!;
    if (seen.has(itemHash)) return;
    seen.add(itemHash);
    this.#metrics.push(itemHash);
    this.#newest = Math.max(this.#newest ?? time, time);
    for (const kind of KINDS)
      for (const record of report[kind]) {
        const records = nodes[kind].get(record.nodeId);
        if (records) records.push(record);
        else nodes[kind].set(record.nodeId, [record]);
      }
  }

  /**
   * @param registrations node id -> Unix seconds, for nodes that share an address; null where the list could not be
   * read, and then nobody is blamed
   */
  finish(registrations: ReadonlyMap<string, number> | null): ScoringResult {
    this.#endHour();
    const { core, compute } = this.#folds;
    return {
      scores: scoresOf([...core.values()], [...compute.values()], this.#context.settings, registrations),
      metrics: this.#metrics.sort(),
      newest: this.#newest,
    };
  }

  #beginHour(hour: number): void {
    this.#endHour();
    this.#hour = { hour, seen: new Set(), nodes: { core: new Map(), compute: new Map() } };
  }

  #endHour(): void {
    if (!this.#hour) return;
    const { hour, nodes } = this.#hour;
    for (const kind of KINDS)
      for (const [nodeId, records] of nodes[kind]) {
        const fold = this.#folds[kind].get(nodeId) ?? new NodeFold(kind, nodeId);
        this.#folds[kind].set(nodeId, fold);
        fold.addHour(hour, records, this.#context);
      }
    this.#hour = undefined;
  }
}

/** Scores messages that are all at hand, in whatever order. */
export function scoreMessages(
  messages: readonly MetricsMessage[],
  input: ScoringInput,
  registrations: ReadonlyMap<string, number> | null,
): ScoringResult {
  const scorer = new Scorer(input);
  for (const message of [...messages].sort((a, b) => b.time - a.time)) scorer.add(message);
  return scorer.finish(registrations);
}

/** The list of the messages that counted, as the file whose hash names it: one item hash a line, in order. */
export const metricsListOf = (metrics: readonly string[]) => metrics.map((hash) => `${hash}\n`).join('');
export const metricsDigestOf = (metrics: readonly string[]) => sha256Hex(metricsListOf(metrics));
