/** Which of several publishers' scores of a node counts (docs/scoring.md, "Which score counts"). Small: the console's first load has it. */

/** What the last scores of one publisher say of a node. */
export interface ToldScore {
  /** 0..1. */
  readonly score: number;
  /** In how many hours of its own length it measured the node. */
  readonly hours: number;
  /** How long an hour of it is, in seconds. */
  readonly hourSeconds: number;
  /** Unix milliseconds of the newest measurement behind its scores. */
  readonly measuredMs: number;
}

const DAY_MS = 86_400_000;
export const SCORES_AGE_MAX_DAYS = 7;
/** A score of measurements that are older counts no longer: what a node was like then says nothing of now. */
export const SCORES_AGE_MAX_MS = SCORES_AGE_MAX_DAYS * DAY_MS;

/** @param nowMs Unix milliseconds */
export const isOutdated = ({ measuredMs }: Pick<ToldScore, 'measuredMs'>, nowMs: number): boolean =>
  nowMs - measuredMs > SCORES_AGE_MAX_MS;

const HOUR_SECONDS = 3_600;

/** How long an hour of the publisher is, in seconds. @param settings as published; where they do not say, as long as any */
export function hourSecondsOf(settings: unknown): number {
  const { hour_seconds: said } = (settings ?? {}) as { readonly hour_seconds?: unknown };
  return Number.isSafeInteger(said) && (said as number) > 0 ? (said as number) : HOUR_SECONDS;
}

const measuredSecondsOf = ({ hours, hourSeconds }: ToldScore) => hours * hourSeconds;

/** @param recordCount as published. Who published a score has measured: without a number it was an hour. */
export const measuredHoursOf = (recordCount: unknown): number =>
  Number.isSafeInteger(recordCount) && (recordCount as number) >= 0 ? (recordCount as number) : 1;

/**
 * Unix milliseconds of the newest measurement behind scores; of scores that do not say, when they were published.
 * @param measuredAt as published
 * @param publishedSeconds Unix seconds
 */
export function measuredMsOf(measuredAt: unknown, publishedSeconds: number): number {
  const ms = typeof measuredAt === 'string' ? Date.parse(measuredAt) : Number.NaN;
  return Number.isNaN(ms) ? publishedSeconds * 1000 : ms;
}

/**
 * Whether one publisher's word on a node counts rather than another's: what is not outdated, of that what was measured in more hours
 * of equal length, then the lower score. So neither who began lately nor who publishes more often changes what another measured for long, and the
 * order in which they are read makes no difference. Where both are outdated, the one that was measured last is told.
 * @param nowMs Unix milliseconds
 */
export function outweighs(one: ToldScore, other: ToldScore, nowMs: number): boolean {
  const isOld = isOutdated(one, nowMs);
  if (isOld !== isOutdated(other, nowMs)) return !isOld;
  const later = isOld ? one.measuredMs - other.measuredMs : 0;
  const longer = measuredSecondsOf(one) - measuredSecondsOf(other);
  return (later || longer || other.score - one.score) > 0;
}
