import { mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ProcessTree } from './processes.ts';

/** CPU time of a process and of all that it starts, whoever becomes its parent meanwhile. */
export interface CpuMeter {
  /** User and system time, in seconds. */
  read(): number;
  /** What has been read stays true; nothing is counted any more. */
  close(): void;
}

const PREFIX = 'skerry-test-';
/** Ticks of /proc/PID/stat in a second, on every architecture that Node runs on (USER_HZ, proc_pid_stat(5)). */
const TICKS_PER_SECOND = 100;

function attempt<T>(what: () => T): T | undefined {
  try {
    return what();
  } catch {
    return undefined;
  }
}

const isAlive = (pid: number) => attempt(() => process.kill(pid, 0)) === true;

/**
 * The directory of this process's control group of version 2: each such group counts CPU time, whether or not it may limit it
 * (cgroups(7)).
 * @param mounts as in /proc/mounts
 * @param groups as in /proc/self/cgroup
 */
export function findGroup(mounts: string, groups: string): string | undefined {
  const mount = mounts
    .split('\n')
    .map((line) => line.split(' '))
    .find(([, , type]) => type === 'cgroup2');
  const path = /^0::(.*)$/m.exec(groups)?.[1];
  return mount?.[1] === undefined || path === undefined ? undefined : join(mount[1], path);
}

const readUsage = (group: string): number | undefined => {
  const usage = /^usage_usec (\d+)$/m.exec(
    attempt(() => readFileSync(join(group, 'cpu.stat'), 'utf8')) ?? '',
  );
  return usage ? Number(usage[1]) / 1e6 : undefined;
};

const enter = (group: string, pid: number) => writeFileSync(join(group, 'cgroup.procs'), String(pid));

/** With what a test made inside; a group that still has a process stays. */
function removeGroup(group: string): void {
  const inner = attempt(() => readdirSync(group, { withFileTypes: true })) ?? [];
  for (const entry of inner) if (entry.isDirectory()) removeGroup(join(group, entry.name));
  attempt(() => rmdirSync(group));
}

/** With all that still runs in them (cgroup.kill, since Linux 5.14). */
function removeAbandoned(home: string): void {
  for (const name of attempt(() => readdirSync(home)) ?? []) {
    if (!name.startsWith(PREFIX) || isAlive(Number(name.slice(PREFIX.length)))) continue;
    attempt(() => writeFileSync(join(home, name, 'cgroup.kill'), '1'));
    removeGroup(join(home, name));
  }
}

/**
 * Counts the CPU time of a run and of each of its files with control groups, which nothing leaves by getting another parent;
 * where none can be made, by what /proc tells of the processes that are seen, which misses the shortest. What a test itself moves
 * to another group is not counted, as a compute node does with its guests where systemd is.
 */
export class CpuAccounts {
  readonly #home: string | undefined;
  readonly #group: string | undefined;
  #count = 0;

  constructor(
    home = attempt(() =>
      findGroup(readFileSync('/proc/mounts', 'utf8'), readFileSync('/proc/self/cgroup', 'utf8')),
    ),
  ) {
    if (home === undefined) return;
    removeAbandoned(home);
    const group = join(home, `${PREFIX}${process.pid}`);
    const made = attempt(() => {
      mkdirSync(group);
      enter(group, process.pid);
      return group;
    });
    if (made === undefined) removeGroup(group);
    this.#home = home;
    this.#group = made;
  }

  get isExact(): boolean {
    return this.#group !== undefined;
  }

  /** The whole run until now, in seconds; undefined where it cannot be told. */
  readTotal(): number | undefined {
    return this.#group === undefined ? undefined : readUsage(this.#group);
  }

  /** @param pid one that has only just been started */
  meter(pid: number, tree: ProcessTree): CpuMeter {
    const inner = this.#group && join(this.#group, String(this.#count++));
    const isIn =
      inner !== undefined &&
      attempt(() => {
        mkdirSync(inner);
        enter(inner, pid);
        return true;
      }) === true;
    if (!isIn) return new SampledMeter(pid, tree);
    return { read: () => readUsage(inner) ?? 0, close: () => removeGroup(inner) };
  }

  /** Gives back what was made. To be called when everything of the run has ended. */
  close(): void {
    if (this.#group === undefined) return;
    attempt(() => enter(this.#home!, process.pid));
    removeGroup(this.#group);
  }
}

/** How often processes are looked at. */
const LOOK_MS = 250;
/** Looks for one that finds what no parent and no session tells of. */
const LOOKS_PER_THOROUGH = 4;

/**
 * The greater of two lower bounds: what all processes of the tree had used when they were last seen, and what the root had with
 * all that it waited for.
 */
export class SampledMeter implements CpuMeter {
  readonly #root: number;
  readonly #tree: ProcessTree;
  readonly #own = new Map<string, number>();
  readonly #timer: NodeJS.Timeout;
  #waited = 0;
  #looks = 0;

  constructor(root: number, tree: ProcessTree, lookMs = LOOK_MS) {
    this.#root = root;
    this.#tree = tree;
    this.#timer = setInterval(() => this.#look(), lookMs);
    this.#timer.unref();
  }

  #look(): void {
    this.#tree.look(this.#looks++ % LOOKS_PER_THOROUGH === 0);
    for (const { pid, startTicks } of this.#tree.listKnown()) {
      const stat = attempt(() => readFileSync(`/proc/${pid}/stat`, 'utf8'));
      const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ');
      if (fields?.[19] !== startTicks) continue;
      const [own, waited] = [11, 13].map((at) => Number(fields[at]) + Number(fields[at + 1]));
      this.#own.set(`${pid}/${startTicks}`, own!);
      if (pid === this.#root) this.#waited = own! + waited!;
    }
  }

  read(): number {
    this.#look();
    const seen = [...this.#own.values()].reduce((sum, ticks) => sum + ticks, 0);
    return Math.max(seen, this.#waited) / TICKS_PER_SECOND;
  }

  close(): void {
    clearInterval(this.#timer);
  }
}
