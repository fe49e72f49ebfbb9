import { existsSync, rmdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseTimes } from '../host/process-usage.ts';
import { readText } from './trees.ts';

export interface GroupLimits {
  readonly memoryBytes: number;
  readonly tasks: number;
  /** Of one core; 2 are two cores. */
  readonly cpus: number;
  /** What it gets beside others where processors, or the disk, are too few for all: `cpus` by default. */
  readonly weight?: number;
  /** Whether what it has may be moved to the swap of the machine. */
  readonly maySwap?: boolean;
}

/** What is in a group, as far as the kernel tells: null where it does not. */
export interface GroupUsage {
  readonly cpuSeconds: number | null;
  readonly memoryBytes: number | null;
}

const MICROSECONDS = 1e6;
const NANOSECONDS = 1e9;

/**
 * By the files of a group (cgroups(7); Documentation/admin-guide/cgroup-v1/cpuacct.rst, which is mounted with `cpu` nearly everywhere).
 * Pure.
 * @param readText a file; empty where it is not there
 */
export function usageIn(version: 1 | 2, readText: (file: string) => string): GroupUsage {
  const numberIn = (digits: string | undefined, unit = 1) => (digits ? Number(digits) / unit : null);
  const textOf = (file: string) => readText(file).trim();
  if (version === 1)
    return {
      cpuSeconds: numberIn(textOf('cpuacct.usage'), NANOSECONDS),
      memoryBytes: numberIn(textOf('memory.usage_in_bytes')),
    };
  return {
    cpuSeconds: numberIn(/^usage_usec ([0-9]+)$/m.exec(readText('cpu.stat'))?.[1], MICROSECONDS),
    memoryBytes: numberIn(textOf('memory.current')),
  };
}

/** Cores that a group of version 1 and those above it have, as in a container: the kernel refuses one below that is given more. */
function cpusOf(group: string): number {
  let cpus = Number.POSITIVE_INFINITY;
  for (let at = group; existsSync(join(at, 'cpu.cfs_quota_us')); at = dirname(at)) {
    const [quotaUs, periodUs] = ['quota', 'period'].map((name) =>
      Number(readText(join(at, `cpu.cfs_${name}_us`))),
    );
    if (quotaUs! > 0 && periodUs! > 0) cpus = Math.min(cpus, quotaUs! / periodUs!);
  }
  return cpus;
}

const CPU_PERIOD_US = 100_000;
/** The longest period and the least quota that the kernel takes. */
const STILL_PERIOD_US = 1_000_000;
const STILL_QUOTA_US = 1_000;

/** What the kernel gives a group that says nothing, and the most that it takes: version 1, and version 2 (cgroups(7)). */
const SHARES = { one: 1024, max: 262_144 };
const WEIGHT = { one: 100, max: 10_000 };

/** The group of one sandbox, or of one guest. */
export class ControlGroup {
  /** Directories that a process enters by its number in their `cgroup.procs`. */
  readonly directories: readonly string[];
  readonly #version: 1 | 2;
  #quotaUs = CPU_PERIOD_US;

  constructor(directories: readonly string[], version: 1 | 2) {
    this.directories = directories;
    this.#version = version;
  }

  /** Writes a setting wherever it exists. */
  #set(file: string, value: string | number): void {
    for (const directory of this.directories) {
      const path = join(directory, file);
      if (existsSync(path)) writeFileSync(path, String(value));
    }
  }

  #read(file: string): string {
    for (const directory of this.directories) {
      const text = readText(join(directory, file));
      if (text !== '') return text;
    }
    return '';
  }

  /** Its part of what is above it, as against its neighbours. @param cores 1 is what a group gets that says nothing */
  weigh(cores: number): void {
    const parts = ({ one, max }: typeof WEIGHT) => Math.min(max, Math.max(1, Math.round(one * cores)));
    if (this.#version === 1) this.#set('cpu.shares', parts(SHARES));
    else {
      this.#set('cpu.weight', parts(WEIGHT));
      this.#set('io.weight', `default ${parts(WEIGHT)}`);
    }
  }

  limit({ memoryBytes, tasks, cpus, weight = cpus, maySwap = false }: GroupLimits): void {
    this.weigh(weight);
    this.#quotaUs = this.#atMost(Math.round(cpus * CPU_PERIOD_US));
    if (this.#version === 2) {
      this.#set('memory.max', memoryBytes);
      if (!maySwap) this.#set('memory.swap.max', 0);
      this.#set('memory.oom.group', 1);
      this.#set('cpu.max', `${this.#quotaUs} ${CPU_PERIOD_US}`);
    } else {
      this.#setMemory(memoryBytes, maySwap);
      this.#share(CPU_PERIOD_US, this.#quotaUs);
    }
    this.#set('pids.max', tasks);
  }

  /** What there is above; version 2 takes any part of that. */
  #atMost(quotaUs: number): number {
    const above = this.#version === 2 ? [] : this.directories.map((directory) => cpusOf(dirname(directory)));
    return Math.min(quotaUs, ...above.map((cpus) => Math.floor(cpus * CPU_PERIOD_US)));
  }

  /** Version 1 refuses a total below the limit of memory, so the order depends on which way it goes. */
  #setMemory(bytes: number, maySwap: boolean): void {
    const files = ['memory.limit_in_bytes', ...(maySwap ? [] : ['memory.memsw.limit_in_bytes'])];
    const isGrowing = Number(this.#read(files[0]!)) < bytes;
    for (const file of isGrowing ? files.reverse() : files) this.#set(file, bytes);
  }

  /**
   * Lets what is inside stand still. What is frozen in version 1 cannot even be killed, so that it would outlive a node
   * that was; there it is given a thousandth of a core instead.
   */
  freeze(): void {
    if (this.#version === 2) this.#set('cgroup.freeze', 1);
    else this.#share(STILL_PERIOD_US, STILL_QUOTA_US);
  }

  thaw(): void {
    if (this.#version === 2) this.#set('cgroup.freeze', 0);
    else this.#share(CPU_PERIOD_US, this.#atMost(this.#quotaUs));
  }

  /** Version 1. In this order: for a moment it may have less than it had, or than it will, and never more. */
  #share(periodUs: number, quotaUs: number): void {
    const isLess = quotaUs < this.#quotaUs;
    const settings = [['cpu.cfs_quota_us', quotaUs] as const, ['cpu.cfs_period_us', periodUs] as const];
    for (const [file, value] of isLess ? settings.toReversed() : settings) this.#set(file, value);
  }

  readUsage(): GroupUsage {
    const usage = usageIn(this.#version, (file) => this.#read(file));
    return { ...usage, cpuSeconds: usage.cpuSeconds ?? this.#sumTimes() };
  }

  /** Where `cpuacct` is mounted elsewhere: of those that are here, with their children that ended. */
  #sumTimes(): number | null {
    const stats = this.#listProcesses().map((pid) => readText(`/proc/${pid}/stat`));
    const times = stats.filter((stat) => stat !== '').map(parseTimes);
    if (times.length === 0) return null;
    return times.reduce((sum, { cpuSeconds, waitedSeconds }) => sum + cpuSeconds + waitedSeconds, 0);
  }

  /** How often the kernel ended something here for want of memory. */
  get outOfMemoryKills(): number {
    const text = this.#read(this.#version === 2 ? 'memory.events' : 'memory.oom_control');
    return Number(/^oom_kill ([0-9]+)$/m.exec(text)?.[1] ?? 0);
  }

  /** A process of another process namespace is told as 0, which would mean all of ours to kill(2). */
  #listProcesses(): number[] {
    return this.#read('cgroup.procs')
      .split('\n')
      .map(Number)
      .filter((pid) => pid > 1);
  }

  /** Ends everything inside: nothing new can start, then all that is there is killed. */
  kill(): void {
    this.#set('pids.max', 0);
    if (this.#version === 2) this.#set('cgroup.kill', 1);
    for (const pid of this.#listProcesses()) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // It ended by itself.
      }
    }
    // What stands still has no time to die.
    this.thaw();
  }

  /** Whether all of it is gone. Processes that were killed a moment ago may still be there. */
  remove(): boolean {
    try {
      for (const directory of this.directories) if (existsSync(directory)) rmdirSync(directory);
      return true;
    } catch {
      return false;
    }
  }
}
