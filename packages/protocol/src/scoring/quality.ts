import type { NodeKind, NodeRecord, NumberField } from '../measurement/report.ts';
import { floorRoot } from './roots.ts';

/** One in the whole numbers that scores are computed with. */
export const UNIT = 1_000_000_000_000;
const UNIT_BIG = BigInt(UNIT);

/** Latencies count in whole microseconds; beyond a quarter of an hour they are all the same. */
const MICROSECONDS = 1_000_000;
const LATENCY_MAX_SECONDS = 1_000;
/** A percentile falls between two latencies at a hundredth part. */
const PARTS = 100;
/** The square of one second, in the square of hundredths of microseconds. */
const SECOND_SQUARED = (MICROSECONDS * PARTS) ** 2;

export interface QualityPart {
  readonly field: NumberField;
  /** An hour is worth nothing where the square of the latency in seconds reaches this. */
  readonly limit: number;
}

/** What an hour's quality is the geometric mean of. */
export const QUALITY_PARTS: Readonly<Record<NodeKind, readonly QualityPart[]>> = {
  compute: [
    { field: 'base_latency', limit: 4 },
    { field: 'diagnostic_vm_latency', limit: 4 },
    { field: 'full_check_latency', limit: 40 },
  ],
  core: [
    { field: 'base_latency', limit: 4 },
    { field: 'metrics_latency', limit: 4 },
    { field: 'aggregate_latency', limit: 8 },
    { field: 'file_download_latency', limit: 8 },
  ],
};

const microsecondsOf = (seconds: number) =>
  Math.floor(Math.min(seconds, LATENCY_MAX_SECONDS) * MICROSECONDS + 0.5);

/**
 * The continuous percentile, in hundredths of microseconds: a whole number, whatever the order of the latencies.
 * @param latencies seconds, at least one
 * @param percentile 0..100
 */
export function percentileOf(latencies: readonly number[], percentile: number): number {
  const sorted = latencies.map(microsecondsOf).sort((a, b) => a - b);
  const place = percentile * (sorted.length - 1);
  const below = sorted[Math.floor(place / PARTS)]!;
  const above = sorted[Math.ceil(place / PARTS)]!;
  return below * PARTS + (place % PARTS) * (above - below);
}

/** Hundredths of microseconds to seconds, for people. */
export const secondsOf = (hundredths: number) => hundredths / (MICROSECONDS * PARTS);

/** The exact definition: the integer part of UNIT times the geometric mean of (1 - P²/limit). */
export function exactMean(percentiles: readonly number[], limits: readonly number[]): number {
  let numerator = 1n;
  let denominator = 1n;
  for (const [index, hundredths] of percentiles.entries()) {
    const whole = BigInt(limits[index]! * SECOND_SQUARED);
    const rest = whole - BigInt(hundredths) ** 2n;
    if (rest <= 0n) return 0;
    numerator *= rest * UNIT_BIG;
    denominator *= whole;
  }
  return Number(floorRoot(numerator / denominator, percentiles.length as 3 | 4));
}

/** Where floating point may be off by more than the margin, the whole numbers decide. */
const FACTOR_MIN = 0.05;
const MARGIN = 0.05;

/**
 * The same number as `exactMean`, mostly at the price of floating point: an estimate that is further from the next
 * whole number than it can be wrong has the right integer part. Of nineteen in twenty it is.
 */
export function meanOf(percentiles: readonly number[], limits: readonly number[]): number {
  let product = 1;
  let least = 1;
  for (const [index, hundredths] of percentiles.entries()) {
    const factor = 1 - (hundredths * hundredths) / (limits[index]! * SECOND_SQUARED);
    product *= factor;
    if (factor < least) least = factor;
  }
  if (least < FACTOR_MIN) return exactMean(percentiles, limits);
  const mean = percentiles.length === 3 ? Math.cbrt(product) : Math.sqrt(Math.sqrt(product));
  const estimate = mean * UNIT;
  const floor = Math.floor(estimate);
  const above = estimate - floor;
  return above < MARGIN || above > 1 - MARGIN ? exactMean(percentiles, limits) : floor;
}

/** Of each latency the percentile in hundredths of microseconds, or null where nobody measured one. */
export function percentilesOf(
  kind: NodeKind,
  records: readonly NodeRecord[],
  percentile: number,
): (number | null)[] {
  return QUALITY_PARTS[kind].map(({ field }) => {
    if (records.length === 1) {
      const only = records[0]!.numbers[field];
      return only === undefined ? null : microsecondsOf(only) * PARTS;
    }
    const values = records.flatMap(({ numbers }) => numbers[field] ?? []);
    return values.length === 0 ? null : percentileOf(values, percentile);
  });
}

const LIMITS_OF: Readonly<Record<NodeKind, readonly number[]>> = {
  core: QUALITY_PARTS.core.map(({ limit }) => limit),
  compute: QUALITY_PARTS.compute.map(({ limit }) => limit),
};

/** How good an hour was, 0..UNIT: nothing where a latency is missing. */
export function qualityOf(kind: NodeKind, percentiles: readonly (number | null)[]): number {
  return percentiles.includes(null) ? 0 : meanOf(percentiles as readonly number[], LIMITS_OF[kind]);
}
