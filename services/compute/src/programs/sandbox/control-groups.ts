import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { parseTimes } from '../../host/process-usage.ts';

/** What is needed of the kernel: without one of these a program could not be held to its limits. */
const CONTROLLERS = ['memory', 'pids', 'cpu'] as const;
type Controller = (typeof CONTROLLERS)[number];

/** Where the groups of this process are: one tree (version 2), or one for each controller (version 1). */
export type GroupTrees =
  | {
      readonly version: 2;
      readonly base: string;
      /** Where what is in `base` itself has to go first: a group that has processes may not divide what it has. */
      readonly own?: string;
    }
  | { readonly version: 1; readonly bases: Readonly<Record<Controller, string>> };

export interface GroupLimits {
  readonly memoryBytes: number;
  readonly tasks: number;
  /** Of one core; 2 are two cores. */
  readonly cpus: number;
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

/** A path as /proc/self/mountinfo writes it: spaces, and what else parts its fields, in octal digits. */
export const unescapePath = (path: string): string =>
  path.replace(/\\([0-7]{3})/g, (_, digits) => String.fromCharCode(Number.parseInt(digits, 8)));

interface GroupMount {
  readonly at: string;
  readonly type: string;
  readonly options: readonly string[];
}

/** Mounts of control groups in /proc/self/mountinfo (proc(5)). */
function listGroupMounts(mountinfo: string): GroupMount[] {
  return mountinfo.split('\n').flatMap((line) => {
    const [left = '', right = ''] = line.split(' - ');
    const [type = '', , options = ''] = right.split(' ');
    return /^cgroup2?$/.test(type)
      ? [{ at: unescapePath(left.split(' ')[4] ?? ''), type, options: options.split(',') }]
      : [];
  });
}

/** The path of this process in the hierarchy of a controller, or that of version 2, by /proc/self/cgroup (cgroups(7)). */
function ownPath(cgroup: string, controller: Controller | ''): string {
  for (const line of cgroup.split('\n')) {
    const [, names = '', path = '/'] = /^[0-9]+:([^:]*):(.*)$/.exec(line) ?? [];
    if (names.split(',').includes(controller)) return path;
  }
  return '/';
}

/** Of the group that systemd made for a unit with `Delegate=`: where the unit's own process is (cgroups(7)). */
const DAEMON_GROUP = 'daemon';
const SERVICE_PATH = /^(.*\/[^/]+\.service)(?:\/daemon)?$/;

/**
 * Where groups for programs belong. Version 1: below the groups of this process, so that its own limits go on holding.
 * Version 2: below the group of the service, which systemd leaves to it; otherwise at the top. undefined: a controller is
 * missing. Pure.
 *
 * @param readControllers `cgroup.controllers` of a group of version 2
 */
export function decideTrees(
  mountinfo: string,
  cgroup: string,
  readControllers: (group: string) => string,
): GroupTrees | undefined {
  const mounts = listGroupMounts(mountinfo);
  const bases: Partial<Record<Controller, string>> = {};
  for (const controller of CONTROLLERS) {
    const mount = mounts.find(({ type, options }) => type === 'cgroup' && options.includes(controller));
    if (mount) bases[controller] = join(mount.at, ownPath(cgroup, controller));
  }
  if (CONTROLLERS.every((name) => bases[name] !== undefined))
    return { version: 1, bases: bases as Record<Controller, string> };
  const unified = mounts.find(({ type }) => type === 'cgroup2');
  if (!unified) return undefined;
  const isWhole = (group: string) => {
    const offered = readControllers(group).split(/\s+/);
    return CONTROLLERS.every((name) => offered.includes(name));
  };
  const [, service] = SERVICE_PATH.exec(ownPath(cgroup, '')) ?? [];
  const base = service === undefined ? undefined : join(unified.at, service);
  if (base !== undefined && isWhole(base)) return { version: 2, base, own: join(base, DAEMON_GROUP) };
  return isWhole(unified.at) ? { version: 2, base: unified.at } : undefined;
}

const read = (path: string) => {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
};

export const findTrees = (): GroupTrees | undefined =>
  decideTrees(read('/proc/self/mountinfo'), read('/proc/self/cgroup'), (group) =>
    read(join(group, 'cgroup.controllers')),
  );

/** Cores that a group of version 1 and those above it have, as in a container: the kernel refuses one below that is given more. */
function cpusOf(group: string): number {
  let cpus = Number.POSITIVE_INFINITY;
  for (let at = group; existsSync(join(at, 'cpu.cfs_quota_us')); at = dirname(at)) {
    const [quotaUs, periodUs] = ['quota', 'period'].map((name) =>
      Number(read(join(at, `cpu.cfs_${name}_us`))),
    );
    if (quotaUs! > 0 && periodUs! > 0) cpus = Math.min(cpus, quotaUs! / periodUs!);
  }
  return cpus;
}

const CPU_PERIOD_US = 100_000;
/** The longest period and the least quota that the kernel takes. */
const STILL_PERIOD_US = 1_000_000;
const STILL_QUOTA_US = 1_000;
const RUN_BYTES = 4;
const MOVES_MAX = 10;
/** Processes that were killed are dead within milliseconds, on a machine that is busy within seconds. */
const CLEAR_TURNS_MAX = 250;
const CLEAR_PAUSE_MS = 20;

/** All groups of one compute node. What an earlier process of it left is cleared first. */
export class ControlGroups {
  readonly #trees: GroupTrees;
  readonly #name: string;
  /** Tells the groups of this process from those that an earlier one left. */
  readonly #run = randomBytes(RUN_BYTES).toString('hex');
  #leftovers: ControlGroup[] = [];

  constructor(trees: GroupTrees, name: string) {
    this.#trees = trees;
    this.#name = name;
  }

  get version(): 1 | 2 {
    return this.#trees.version;
  }

  #homeOf(controller: Controller): string {
    const { version } = this.#trees;
    return join(version === 2 ? this.#trees.base : this.#trees.bases[controller], this.#name);
  }

  /** What holds all groups of the node, in each tree. */
  get homes(): readonly string[] {
    return [...new Set(CONTROLLERS.map((name) => this.#homeOf(name)))];
  }

  /** What all of the node's groups take; processor time also of those that are gone. */
  readUsage(): GroupUsage {
    return new ControlGroup(this.homes, this.version).readUsage();
  }

  /** Throws where groups cannot be made: not root, or a read-only tree. */
  prepare(): void {
    this.#leaveBase();
    for (const home of this.homes) {
      if (existsSync(home)) this.#removeChildren(home);
      else mkdirSync(home);
    }
    if (this.#trees.version === 2) {
      for (const directory of [this.#trees.base, this.#homeOf('memory')])
        writeFileSync(join(directory, 'cgroup.subtree_control'), '+memory +pids +cpu');
    }
  }

  /** Version 2, in a service: this process, and what it already started. */
  #leaveBase(): void {
    if (this.#trees.version !== 2 || this.#trees.own === undefined) return;
    const { base, own } = this.#trees;
    if (!existsSync(own)) mkdirSync(own);
    const list = () => read(join(base, 'cgroup.procs')).split('\n').filter(Boolean);
    // What was started while its parent moved is found the next time.
    for (let turn = 0, left = list(); turn < MOVES_MAX && left.length > 0; turn++, left = list())
      for (const pid of left) {
        try {
          writeFileSync(join(own, 'cgroup.procs'), pid);
        } catch {
          // It ended.
        }
      }
  }

  /** What was killed a moment ago still holds its group; it is removed with the next ones. */
  #removeChildren(home: string): void {
    for (const entry of readdirSync(home, { withFileTypes: true })) {
      if (!entry.isDirectory()) continue;
      const group = new ControlGroup([join(home, entry.name)], this.version);
      group.kill();
      this.#leftovers.push(group);
    }
    this.#removeLeftovers();
  }

  #removeLeftovers(): void {
    this.#leftovers = this.#leftovers.filter((group) => !group.remove());
  }

  create(name: string, limits: GroupLimits): ControlGroup {
    this.#removeLeftovers();
    const directories = this.homes.map((home) => join(home, `${this.#run}-${name}`));
    const group = new ControlGroup(directories, this.version);
    for (const directory of directories) mkdirSync(directory);
    group.limit(limits);
    return group;
  }

  /** Removes what no sandbox uses any more. What is dying holds its group until it is dead; the next start clears the rest. */
  async clear(): Promise<void> {
    for (let turn = 1; !this.#tryClear() && turn < CLEAR_TURNS_MAX; turn++) await setTimeout(CLEAR_PAUSE_MS);
  }

  /** Whether all of it is gone. */
  #tryClear(): boolean {
    for (const home of this.homes.filter((one) => existsSync(one))) {
      try {
        this.#removeChildren(home);
        rmdirSync(home);
      } catch {
        return false;
      }
    }
    return true;
  }
}

/** The group of one sandbox. */
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
      const text = read(join(directory, file));
      if (text !== '') return text;
    }
    return '';
  }

  limit({ memoryBytes, tasks, cpus }: GroupLimits): void {
    this.#quotaUs = this.#atMost(Math.round(cpus * CPU_PERIOD_US));
    if (this.#version === 2) {
      this.#set('memory.max', memoryBytes);
      this.#set('memory.swap.max', 0);
      this.#set('memory.oom.group', 1);
      this.#set('cpu.max', `${this.#quotaUs} ${CPU_PERIOD_US}`);
    } else {
      this.#setMemory(memoryBytes);
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
  #setMemory(bytes: number): void {
    const files = ['memory.limit_in_bytes', 'memory.memsw.limit_in_bytes'];
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
    const stats = this.#listProcesses().map((pid) => read(`/proc/${pid}/stat`));
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
