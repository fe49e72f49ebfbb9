import { findDuplicates } from './network-place.ts';
import type { NodeFold, NodeStatus } from './node-fold.ts';
import { UNIT } from './quality.ts';
import type { ScoringSettings } from './settings.ts';

/** Why a compute node's score is what it is. A contract with those who read: never renumbered. */
export const SCORE_CODES = {
  NO_IPV4: 1001,
  NO_IPV6: 1002,
  IPV4_UNSTABLE: 1003,
  IPV6_UNSTABLE: 1004,
  DUPLICATE_IP: 1005,
  NODE_DEAD: 1006,
  NODE_INACTIVE: 1007,
} as const;

export interface CoreScore {
  readonly node_id: string;
  /** 0..1, twelve digits after the point. */
  readonly total_score: number;
  /** 0..1: how few nodes share the node's autonomous system. */
  readonly decentralization: number;
  readonly measurements: {
    readonly total_nodes: number;
    readonly nodes_with_identical_asn: number;
    /** How many hours counted. */
    readonly record_count: number;
    /** Before corrections. */
    readonly total_score: number;
  };
}

export interface ComputeScore extends CoreScore {
  readonly status: NodeStatus;
  readonly codes: readonly number[];
  readonly measurements: CoreScore['measurements'] & {
    readonly has_ipv4: boolean;
    readonly has_ipv6: boolean;
    readonly ipv4_changes: number;
    readonly ipv6_changes: number;
    readonly ip_penalized: boolean;
    readonly duplicate_ip: boolean;
    readonly status: NodeStatus;
  };
}

export interface ScoreView {
  readonly ccn: readonly CoreScore[];
  readonly crn: readonly ComputeScore[];
}

interface Crowd {
  readonly total: number;
  identical(asn: number | null): number;
}

/** How many nodes stand in each autonomous system. A node that moved stands in both; one of which nothing is known stands nowhere. */
function countCrowd(folds: readonly NodeFold[], duplicates: ReadonlySet<string>): Crowd {
  const counts = new Map<number | null, number>();
  let total = 0;
  for (const fold of folds)
    for (const asn of fold.asns) {
      total++;
      counts.set(asn, (counts.get(asn) ?? 0) + 1);
    }
  for (const fold of folds)
    if (duplicates.has(fold.nodeId)) counts.set(fold.asn, (counts.get(fold.asn) ?? 0) - 1);
  return { total, identical: (asn) => counts.get(asn) ?? 0 };
}

/** (1 - identical/total)² in UNIT, rounded down; of no nodes 0. */
export function decentralizationOf(identical: number, total: number): number {
  if (total === 0) return 0;
  const others = BigInt(total - identical);
  return Number((others * others * BigInt(UNIT)) / (BigInt(total) * BigInt(total)));
}

function coreScoreOf(fold: NodeFold, crowd: Crowd): CoreScore {
  const identical = crowd.identical(fold.asn);
  const total = fold.total / UNIT;
  return {
    node_id: fold.nodeId,
    total_score: total,
    decentralization: decentralizationOf(identical, crowd.total) / UNIT,
    measurements: {
      total_nodes: crowd.total,
      nodes_with_identical_asn: identical,
      record_count: fold.hours,
      total_score: total,
    },
  };
}

function computeScoreOf(
  fold: NodeFold,
  crowd: Crowd,
  isDuplicate: boolean,
  settings: ScoringSettings,
): ComputeScore {
  const { place, status } = fold;
  const base = coreScoreOf(fold, crowd);
  const penalized = place.isPenalized(settings.ip_max_changes);
  const isUnstable = (changes: number) => changes >= settings.ip_max_changes;
  const reasons: [boolean, number][] = [
    [!place.ipv4.isKnown, SCORE_CODES.NO_IPV4],
    [!place.pool.isKnown, SCORE_CODES.NO_IPV6],
    [isUnstable(place.ipv4.changes), SCORE_CODES.IPV4_UNSTABLE],
    [isUnstable(place.pool.changes), SCORE_CODES.IPV6_UNSTABLE],
    [isDuplicate, SCORE_CODES.DUPLICATE_IP],
    [status === 'dead', SCORE_CODES.NODE_DEAD],
    [status === 'inactive', SCORE_CODES.NODE_INACTIVE],
  ];
  const isOut =
    (isDuplicate && settings.duplicate_ip_enforced) || (status === 'dead' && settings.dead_enforced);
  return {
    ...base,
    total_score: isOut || (penalized && settings.ip_enforced) ? 0 : base.total_score,
    decentralization: isOut ? 0 : base.decentralization,
    status,
    codes: reasons.flatMap(([applies, code]) => (applies ? [code] : [])),
    measurements: {
      ...base.measurements,
      has_ipv4: place.ipv4.isKnown,
      has_ipv6: place.pool.isKnown,
      ipv4_changes: place.ipv4.changes,
      ipv6_changes: place.pool.changes,
      ip_penalized: penalized,
      duplicate_ip: isDuplicate,
      status,
    },
  };
}

const byId = (a: NodeFold, b: NodeFold) => (a.nodeId < b.nodeId ? -1 : 1);

/** The published scores, in order of node id. */
export function scoresOf(
  core: readonly NodeFold[],
  compute: readonly NodeFold[],
  settings: ScoringSettings,
  registrations: ReadonlyMap<string, number> | null,
): ScoreView {
  const isScored = (fold: NodeFold) => fold.asn !== null || !settings.skip_without_asn;
  const claims = compute.map(({ nodeId, place, isVerified }) => ({
    nodeId,
    ipv4: place.ipv4.newest,
    pool: place.pool.newest,
    proved: { ipv4: place.ipv4.isProved, pool: place.pool.isProved },
    isVerified,
  }));
  const duplicates = registrations === null ? new Set<string>() : findDuplicates(claims, registrations);
  const coreCrowd = countCrowd(core, new Set());
  const computeCrowd = countCrowd(compute, settings.duplicate_ip_enforced ? duplicates : new Set());
  return {
    ccn: core
      .filter(isScored)
      .sort(byId)
      .map((fold) => coreScoreOf(fold, coreCrowd)),
    crn: compute
      .filter(isScored)
      .sort(byId)
      .map((fold) => computeScoreOf(fold, computeCrowd, duplicates.has(fold.nodeId), settings)),
  };
}
