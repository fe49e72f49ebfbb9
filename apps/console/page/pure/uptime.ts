/** How a node was over time, in parts of equal length. */

/** A part with measurements; those without are left out. Times are Unix seconds. */
export interface MeasuredPart {
  readonly start: number;
  readonly measurements: number;
  readonly answered: number;
  readonly versions: readonly string[];
}

export interface Bar {
  /** Unix milliseconds. */
  readonly fromMs: number;
  /** From 0 to 1; null where nobody looked. */
  readonly share: number | null;
  readonly tries: number;
}

interface Frame {
  /** Unix seconds. */
  readonly from: number;
  readonly step: number;
  readonly count: number;
}

/** A bar for each part, oldest first, also for those in which nobody looked. */
export function barsOf(
  parts: readonly Pick<MeasuredPart, 'start' | 'measurements' | 'answered'>[],
  { from, step, count }: Frame,
): Bar[] {
  const byStart = new Map(parts.map((part) => [part.start, part]));
  return Array.from({ length: count }, (_, at) => {
    const start = from + at * step;
    const part = byStart.get(start);
    const share = part && part.measurements > 0 ? part.answered / part.measurements : null;
    return { fromMs: start * 1_000, share, tries: part?.measurements ?? 0 };
  });
}

/** Of all tries, the share that was answered; null where there was none. */
export function shareOf(bars: readonly Bar[]): number | null {
  const tries = bars.reduce((sum, one) => sum + one.tries, 0);
  return tries === 0 ? null : bars.reduce((sum, { share, tries: n }) => sum + (share ?? 0) * n, 0) / tries;
}

/** A version that a node told, from its first to its last part without another between. */
export interface VersionRun {
  readonly version: string;
  readonly fromMs: number;
  readonly toMs: number;
}

/** Versions over time, newest first. One that comes back after another begins anew. */
export function versionRuns(parts: readonly MeasuredPart[], step: number): VersionRun[] {
  const runs: { version: string; fromMs: number; toMs: number }[] = [];
  let before: readonly string[] = [];
  for (const { start, versions } of parts) {
    const [fromMs, toMs] = [start * 1_000, (start + step) * 1_000];
    for (const version of versions) {
      const last = before.includes(version) ? runs.findLast((run) => run.version === version) : undefined;
      if (last) last.toMs = toMs;
      else runs.push({ version, fromMs, toMs });
    }
    // A part in which it told none says nothing about them.
    if (versions.length > 0) before = versions;
  }
  return runs.reverse();
}
