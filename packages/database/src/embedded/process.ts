import { readFileSync, readlinkSync } from 'node:fs';
import { basename } from 'node:path';

/** The kernel adds this once the file was replaced, as a new installation does. */
const DELETED = / \(deleted\)$/;

/** What /proc tells of a process (proc(5)). */
export interface ProcessFacts {
  readonly pid: number;
  readonly zombie: boolean;
  /** Start time in clock ticks after boot. */
  readonly startTicks: string;
  /** Base name of the program file, undefined where we may not see it. */
  readonly program: string | undefined;
  readonly workingDirectory: string | undefined;
}

export function readProcess(pid: number): ProcessFacts | undefined {
  if (!Number.isInteger(pid) || pid <= 0) return undefined;
  const stat = attempt(() => readFileSync(`/proc/${pid}/stat`, 'utf8'));
  if (stat === undefined) return undefined;
  const exe = attempt(() => readlinkSync(`/proc/${pid}/exe`));
  return {
    pid,
    ...parseStat(stat),
    program: exe === undefined ? undefined : basename(exe).replace(DELETED, ''),
    workingDirectory: attempt(() => readlinkSync(`/proc/${pid}/cwd`)),
  };
}

/** The second field is the program's name in parentheses and may hold anything, so fields count from the last one. */
export function parseStat(stat: string): { zombie: boolean; startTicks: string } {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return { zombie: fields[0] === 'Z' || fields[0] === 'X', startTicks: fields[19] ?? '' };
}

function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
