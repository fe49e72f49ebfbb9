/** How far a build is. */
export interface Progress {
  /** 0..100, never falling within one build. */
  readonly percent: number;
  readonly message: string;
  /** The same step as in the report before, further on. */
  readonly isFurther?: boolean;
}

/** Of one step so much is to come, or so much time to pass, before the log has another line of it. */
const LOGGED_EVERY = { percent: 10, ms: 10_000 } as const;

/** Which reports of a build the log has: of every step the first one, and of a long one some others. */
export class LoggedProgress {
  #percent = 0;
  #atMs = 0;

  /** @param nowMs milliseconds since whenever; never set. @returns whether the log is to have this one */
  isDue({ percent, isFurther = false }: Progress, nowMs: number): boolean {
    const isFar = percent - this.#percent >= LOGGED_EVERY.percent || nowMs - this.#atMs >= LOGGED_EVERY.ms;
    if (isFurther && !isFar) return false;
    [this.#percent, this.#atMs] = [percent, nowMs];
    return true;
  }
}

export type Report = (progress: Progress) => void;

/** Marks in the words of mmdebstrap(1), and how far the whole build is when they appear (measured on one machine). */
export const BOOTSTRAP_MARKS: readonly {
  readonly starts: string;
  readonly percent: number;
  readonly message: string;
}[] = [
  { starts: 'running apt-get update', percent: 3, message: 'reading the list of packages' },
  { starts: 'downloading packages', percent: 8, message: 'downloading packages' },
  { starts: 'extracting archives', percent: 20, message: 'unpacking packages' },
  { starts: 'installing essential packages', percent: 30, message: 'installing essential packages' },
  { starts: 'installing remaining packages', percent: 42, message: 'installing the other packages' },
  { starts: 'running --customize-hook', percent: 76, message: 'downloading the kernel' },
  { starts: 'cleaning package lists', percent: 80, message: 'cleaning up' },
];

/** What a line of mmdebstrap's standard error says about how far it is, if anything. */
export function parseBootstrapLine(line: string): Progress | undefined {
  const text = line.replace(/^I: /, '');
  const mark = BOOTSTRAP_MARKS.find((one) => text.startsWith(one.starts));
  return mark && { percent: mark.percent, message: mark.message };
}
