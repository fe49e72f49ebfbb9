import { readFile } from 'node:fs/promises';

/** What a process takes, as the kernel tells it (proc(5)). */
export interface ProcessUsage {
  /** Milliseconds since 1970. */
  readonly startedAtMs: number;
  /** Of all its threads, those that ended included. */
  readonly cpuSeconds: number;
  /**
   * What is resident of its own: anonymous memory, which a machine's is, and shared, without files such as its code. The kernel keeps count
   * of these. What it has in common with others (PSS) would have to be found page by page: of each GiB that takes 20 ms of a processor.
   */
  readonly memoryBytes: number;
}

/** The kernel's USER_HZ, in which it tells times, on x86_64 and arm64. */
const TICKS_PER_SECOND = 100;
/** In /proc/PID/stat, counted from the first behind the name, which may have spaces and parentheses itself. */
const STAT_FIELDS = { user: 11, system: 12, waitedUser: 13, waitedSystem: 14, started: 19 } as const;
const KIB = 1024;
const SECOND_MS = 1_000;

export interface ProcessTimes {
  readonly cpuSeconds: number;
  /** What its children took that ended. */
  readonly waitedSeconds: number;
  /** Since the computer was started. */
  readonly startedSeconds: number;
}

/** By /proc/PID/stat. Pure. */
export function parseTimes(stat: string): ProcessTimes {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const secondsOf = (...names: (keyof typeof STAT_FIELDS)[]) =>
    names.reduce((sum, name) => sum + Number(fields[STAT_FIELDS[name]]), 0) / TICKS_PER_SECOND;
  return {
    cpuSeconds: secondsOf('user', 'system'),
    waitedSeconds: secondsOf('waitedUser', 'waitedSystem'),
    startedSeconds: secondsOf('started'),
  };
}

/** Bytes of a line such as `RssAnon:   1234 kB`; undefined where there is none. Pure. */
export function parseKib(text: string, name: 'RssAnon' | 'RssShmem'): number | undefined {
  const digits = new RegExp(`^${name}:\\s+([0-9]+) kB$`, 'm').exec(text)?.[1];
  return digits === undefined ? undefined : Number(digits) * KIB;
}

const read = (path: string) => readFile(path, 'utf8').catch(() => '');

/** When the computer was started, milliseconds since 1970. */
const readBootMs = async () =>
  Number(/^btime ([0-9]+)$/m.exec(await read('/proc/stat'))?.[1] ?? 0) * SECOND_MS;

/** Undefined where there is no such process any more. */
export async function readProcessUsage(pid: number): Promise<ProcessUsage | undefined> {
  const [stat, status, bootMs] = await Promise.all([
    read(`/proc/${pid}/stat`),
    read(`/proc/${pid}/status`),
    readBootMs(),
  ]);
  if (stat === '') return undefined;
  const { cpuSeconds, startedSeconds } = parseTimes(stat);
  return {
    startedAtMs: Math.round(bootMs + startedSeconds * SECOND_MS),
    cpuSeconds,
    memoryBytes: (parseKib(status, 'RssAnon') ?? 0) + (parseKib(status, 'RssShmem') ?? 0),
  };
}
