import { readdirSync, readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { clearLeftGroups } from '@skerry/compute';
import { until } from '@skerry/kit/testing/until';

/** Processes as /proc shows them (proc(5)). */

export interface Process {
  readonly pid: number;
  readonly parent: number;
  readonly commandLine: string;
}

function readProcess(pid: number): Process | undefined {
  try {
    const parent = Number(/^PPid:\s+(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
    return {
      pid,
      parent,
      commandLine: readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim(),
    };
  } catch {
    return undefined;
  }
}

const listAll = (): Process[] =>
  readdirSync('/proc').flatMap((name) => (/^\d+$/.test(name) ? (readProcess(Number(name)) ?? []) : []));

/** The processes whose command line fits. */
export function findProcesses(pattern: RegExp): Process[] {
  return listAll().filter(({ commandLine }) => pattern.test(commandLine));
}

/** A process and everything below it. */
export function listDescendants(root: number): Process[] {
  const all = listAll();
  const found = all.filter((one) => one.pid === root);
  for (const one of found) found.push(...all.filter((child) => child.parent === one.pid));
  return found;
}

/** Ends all of them at once; some may end with the others before their turn. */
export function killAll(processes: readonly Pick<Process, 'pid'>[]): void {
  for (const { pid } of processes) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }
}

/** Ends the machines of a network that keeps its data below `home`, which outlive their node, and everything that this process started. */
async function endAllOf(home: string): Promise<void> {
  const machines = findProcesses(new RegExp(`^qemu-system.*${home}`));
  killAll(machines);
  killAll(listDescendants(process.pid).filter(({ pid }) => pid !== process.pid));
  // A machine's control group is its own until it has ended.
  await until('the machines are gone', () =>
    machines.every(({ pid, commandLine }) => readProcess(pid)?.commandLine !== commandLine),
  );
}

/** Takes away the control groups of compute nodes that were killed below `home`. */
async function clearGroupsOf(home: string): Promise<void> {
  for (const path of readdirSync(home, { recursive: true, encoding: 'utf8' }))
    if (path.endsWith('programs/control-groups.json')) await clearLeftGroups(join(home, dirname(path), '..'));
}

/**
 * What a process that plays one scenario does: says why it fails, and leaves nothing behind of what it started and kept below `home`.
 *
 * @param tellMore what else says why, such as the log of another program
 */
export async function playAt(
  home: string,
  scenario: () => Promise<void>,
  tellMore = async (): Promise<string> => '',
): Promise<void> {
  try {
    await scenario();
  } catch (error) {
    console.error(error);
    const more = await tellMore();
    if (more !== '') console.error(more);
    process.exitCode = 1;
  } finally {
    await endAllOf(home);
    await clearGroupsOf(home);
    await rm(home, { recursive: true, force: true });
  }
}

/** The memory that these processes hold, shared pages counted in parts, MiB. */
export function residentMib(processes: readonly Process[]): number {
  const kib = processes.map(({ pid }) => {
    try {
      return Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1] ?? 0);
    } catch {
      return 0;
    }
  });
  return Math.round(kib.reduce((sum, one) => sum + one, 0) / 1024);
}
