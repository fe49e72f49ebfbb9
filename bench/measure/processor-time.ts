import { readdirSync, readFileSync } from 'node:fs';

/** USER_HZ of Linux, on every machine that Node runs on. */
const TICKS_PER_SECOND = 100;

interface Process {
  readonly parent: number;
  readonly ticks: number;
}

/** What a process used, with its children that have ended (proc_pid_stat(5)); undefined where it has ended itself. */
function readProcess(pid: number): Process | undefined {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ')
      .map(Number);
    return { parent: fields[1]!, ticks: fields[11]! + fields[12]! + fields[13]! + fields[14]! };
  } catch {
    return undefined;
  }
}

/** Processes and all below them, by their numbers. */
function readBelow(roots: readonly number[]): Map<number, Process> {
  const all = new Map(
    readdirSync('/proc')
      .map(Number)
      .filter(Number.isInteger)
      .flatMap((pid) => {
        const found = readProcess(pid);
        return found ? [[pid, found] as const] : [];
      }),
  );
  const isBelow = (pid: number): boolean => {
    if (roots.includes(pid)) return true;
    const parent = all.get(pid)?.parent;
    return parent !== undefined && parent > 1 && isBelow(parent);
  };
  return new Map([...all].filter(([pid]) => isBelow(pid)));
}

/** Numbers of processes and of all below them. */
export const listProcessesBelow = (roots: readonly number[]): number[] => [...readBelow(roots).keys()];

/** Seconds that processes and all below them used so far. Load of others hardly changes it, unlike the time that passes. */
export function readProcessorSeconds(roots: readonly number[]): number {
  const ticks = [...readBelow(roots).values()].reduce((sum, one) => sum + one.ticks, 0);
  return ticks / TICKS_PER_SECOND;
}

/** CPU seconds of all threads of some processes, to the nanosecond (sched/schedstat). */
export function cpuSeconds(pids: readonly number[]): number {
  let nanoseconds = 0;
  for (const pid of pids)
    for (const task of readdirSync(`/proc/${pid}/task`))
      nanoseconds += Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, 'utf8').split(' ')[0]);
  return nanoseconds / 1e9;
}
