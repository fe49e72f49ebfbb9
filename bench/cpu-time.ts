import { readdir, readFile } from 'node:fs/promises';

/** What /proc counts in (proc(5), "sysconf(_SC_CLK_TCK)"). */
const TICKS_PER_SECOND = 100;

interface Times {
  readonly parent: number;
  readonly own: number;
  readonly ended: number;
}

/** Undefined where the process has ended. */
async function readTimes(pid: number): Promise<Times | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined);
  if (stat === undefined) return undefined;
  // The name before may hold anything.
  const fields = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number);
  const [user, system, endedUser, endedSystem] = fields.slice(11, 15) as [number, number, number, number];
  return { parent: fields[1]!, own: user + system, ended: endedUser + endedSystem };
}

/** Seconds of processor time that a process and its children, also those that have ended, have taken so far. */
export async function readCpuSeconds(pid: number): Promise<number> {
  const times = await readTimes(pid);
  if (!times) return 0;
  let ticks = times.own + times.ended;
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const child = await readTimes(Number(name));
    if (child?.parent === pid) ticks += child.own;
  }
  return ticks / TICKS_PER_SECOND;
}
