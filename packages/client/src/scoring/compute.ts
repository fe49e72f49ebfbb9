import {
  canonicalJson,
  type HourDetail,
  type MetricsMessage,
  metricsDigestOf,
  metricsListOf,
  type NodeKind,
  type Period,
  Scorer,
  type ScoreView,
  type ScoringSettings,
  sha256Hex,
  type VersionTable,
} from '@skerry/protocol';
import { readMetricsMessages, type ScoringSource } from './published.ts';

/** All that scores follow from, beside the messages themselves. */
export interface ScoringTerms {
  readonly period: Period;
  readonly settings: ScoringSettings;
  /** Addresses whose metrics count. */
  readonly publishers: readonly string[];
  readonly versions: VersionTable;
  /** Node id -> Unix seconds; undefined: no node list, nobody is blamed for sharing an address. */
  readonly registrations: Readonly<Record<string, number>> | undefined;
  readonly tags: readonly string[];
}

/** `content.content` of the published scores. Inputs are named by the SHA-256 of files that are stored beside it. */
export interface ScoresContent {
  readonly version: '1.1';
  readonly tags: readonly string[];
  /** ISO 8601; from is inclusive, to is exclusive. */
  readonly period: { readonly from_date: string; readonly to_date: string };
  /** Time of the newest metrics message, ISO 8601. */
  readonly measured_at: string | null;
  readonly settings: ScoringSettings;
  readonly inputs: {
    readonly publishers: readonly string[];
    /** The list of item hashes, one a line, in order. */
    readonly metrics: { readonly count: number; readonly hash: string };
    readonly versions: string;
    readonly registrations: string | null;
  };
  /** SHA-256 of `scores` as canonical JSON (RFC 8785). */
  readonly scores_hash: string;
  readonly scores: ScoreView;
}

export interface ComputedScores {
  readonly content: ScoresContent;
  /** The files that `inputs` names, by hash. */
  readonly files: ReadonlyMap<string, string>;
  /** Unix seconds of the newest message, or null. */
  readonly newest: number | null;
}

export type OnHour = (kind: NodeKind, nodeId: string, detail: HourDetail) => void;

const isoOf = (seconds: number) => new Date(seconds * 1000).toISOString();

/** Computes scores in one pass over messages that come newest first. */
export async function computeScores(
  messages: AsyncIterable<MetricsMessage>,
  terms: ScoringTerms,
  onHour?: OnHour,
): Promise<ComputedScores> {
  const { period, settings, versions, registrations } = terms;
  const scorer = new Scorer({ period, settings, versions, onHour });
  for await (const message of messages) scorer.add(message);
  const known = registrations === undefined ? null : new Map(Object.entries(registrations));
  const { scores, metrics, newest } = scorer.finish(known);
  const files = new Map<string, string>();
  const name = (text: string) => {
    const hash = sha256Hex(text);
    files.set(hash, text);
    return hash;
  };
  files.set(metricsDigestOf(metrics), metricsListOf(metrics));
  const content: ScoresContent = {
    version: '1.1',
    tags: terms.tags,
    period: { from_date: isoOf(period.from), to_date: isoOf(period.to) },
    measured_at: newest === null ? null : isoOf(newest),
    settings,
    inputs: {
      publishers: [...terms.publishers].sort(),
      metrics: { count: metrics.length, hash: metricsDigestOf(metrics) },
      versions: name(canonicalJson(versions)),
      registrations: registrations === undefined ? null : name(canonicalJson(registrations)),
    },
    scores_hash: sha256Hex(canonicalJson(scores)),
    scores,
  };
  return { content, files, newest };
}

/** The same from what a core node has. */
export const computeScoresOf = (source: ScoringSource, terms: ScoringTerms, onHour?: OnHour) =>
  computeScores(readMetricsMessages(source, terms.publishers, terms.period), terms, onHour);
