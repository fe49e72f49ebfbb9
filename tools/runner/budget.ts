/** What files of tests may take of the processor: what a complete run took when somebody last looked at it. */
export interface Spent {
  /** One file, or the small ones of a package that shared processes. */
  readonly what: string;
  /** User and system time of all its processes. */
  readonly seconds: number;
}

/** From here a file has an entry of its own. */
const ENTRY_SECONDS = 5;
/** Times differ from run to run by as much. */
const GROWTH_FACTOR = 1.4;
const GROWTH_SECONDS = 4;
/** Fewer files than these say nothing about the machine. */
const SAMPLES_MIN = 8;

export type Budget = Readonly<Record<string, number>>;

/** Sums of the same name, the greatest first. */
export function sumUp(spent: readonly Spent[]): Spent[] {
  const sums = new Map<string, number>();
  for (const { what, seconds } of spent) sums.set(what, (sums.get(what) ?? 0) + seconds);
  return [...sums]
    .map(([what, seconds]) => ({ what, seconds }))
    .sort((one, other) => other.seconds - one.seconds);
}

/** How much slower this machine is than the one of the budget: the median of all files that have an entry. */
function slownessOf(sums: readonly Spent[], budget: Budget): number {
  const ratios = sums
    .flatMap(({ what, seconds }) => (budget[what] ? [seconds / budget[what]] : []))
    .sort((one, other) => one - other);
  return ratios.length < SAMPLES_MIN ? 1 : ratios[Math.floor(ratios.length / 2)]!;
}

/** A line for each that takes notably more than it may, beside how fast the machine is. */
export function listGrown(sums: readonly Spent[], budget: Budget): string[] {
  const slowness = slownessOf(sums, budget);
  return sums.flatMap(({ what, seconds }) => {
    const allowed = (budget[what] ?? ENTRY_SECONDS) * slowness;
    if (seconds <= allowed * GROWTH_FACTOR + GROWTH_SECONDS) return [];
    const instead = budget[what] === undefined ? 'has no budget' : `instead of ${allowed.toFixed(0)}`;
    return [`${what} took ${seconds.toFixed(0)} CPU s, ${instead}`];
  });
}

/** What is to be kept of a complete run. */
export function budgetOf(sums: readonly Spent[]): Budget {
  return Object.fromEntries(
    sums
      .filter(({ seconds }) => seconds >= ENTRY_SECONDS)
      .map(({ what, seconds }) => [what, Math.round(seconds)] as const)
      .sort(([one], [other]) => (one < other ? -1 : 1)),
  );
}

const SHOWN_MAX = 25;

export interface Machine {
  /** How long the run took. */
  readonly seconds: number;
  readonly cores: number;
}

/**
 * The heaviest, as a table, and how busy they kept the machine: a run that waits is not made shorter by less work. Pure.
 * @param whole user and system time of the whole run, in seconds; undefined where only files could be counted
 */
export function tabulate(
  sums: readonly Spent[],
  whole: number | undefined,
  { seconds, cores }: Machine,
): string {
  const rows = sums
    .slice(0, SHOWN_MAX)
    .map(({ what, seconds: own }) => `${own.toFixed(1).padStart(8)}  ${what}`);
  const rest = sums.slice(SHOWN_MAX).reduce((sum, one) => sum + one.seconds, 0);
  if (sums.length > SHOWN_MAX) rows.push(`${rest.toFixed(1).padStart(8)}  ${sums.length - SHOWN_MAX} others`);
  const told = sums.reduce((sum, one) => sum + one.seconds, 0);
  if (whole !== undefined) {
    const untold = Math.max(0, whole - told).toFixed(1);
    rows.push(`${untold.padStart(8)}  the runner, with what it checks and compiles first`);
  }
  const total = whole ?? told;
  const busy = Math.round((100 * total) / (seconds * cores));
  const machine = `${busy} % of what ${cores} cores have in ${seconds.toFixed(0)} s`;
  return [`CPU s of ${total.toFixed(0)} in all, ${machine}:`, ...rows].join('\n');
}
