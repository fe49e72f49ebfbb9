import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** What is needed of the kernel: without one of these a program could not be held to its limits. */
const CONTROLLERS = ['memory', 'pids', 'cpu'] as const;
export type Controller = (typeof CONTROLLERS)[number];

/** Where the groups of this process are: one tree (version 2), or one for each controller (version 1). */
export type GroupTrees =
  | {
      readonly version: 2;
      readonly base: string;
      /** Where what is in `base` itself has to go first: a group that has processes may not divide what it has. */
      readonly own?: string;
    }
  | { readonly version: 1; readonly bases: Readonly<Record<Controller, string>> };

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

/** What divides the disk, where the kernel can: it is missed by nobody else. */
const IO = 'io';
const MOVES_MAX = 10;

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

/** A file of the kernel's; empty where it cannot be read. */
export const readText = (path: string): string => {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
};

export const findTrees = (): GroupTrees | undefined =>
  decideTrees(readText('/proc/self/mountinfo'), readText('/proc/self/cgroup'), (group) =>
    readText(join(group, 'cgroup.controllers')),
  );

const NAME_DIGITS = 12;

/** What a node calls its groups. @param nodeId 64 hexadecimal digits */
export const groupNameOf = (nodeId: string): string => `skerry-${nodeId.slice(0, NAME_DIGITS)}`;

/** The directory that holds all groups of one kind, in each tree. @param name of that directory */
export const homesIn = (trees: GroupTrees, name: string): string[] => [
  ...new Set(
    CONTROLLERS.map((controller) => join(trees.version === 2 ? trees.base : trees.bases[controller], name)),
  ),
];

/**
 * Makes the homes of groups, and has the kernel divide what there is between their children. Throws where groups cannot be made: not
 * root, or a read-only tree.
 */
export function prepareHomes(trees: GroupTrees, homes: readonly string[]): void {
  leaveBase(trees);
  for (const home of homes) mkdirSync(home, { recursive: true });
  if (trees.version === 1) return;
  for (const directory of [trees.base, ...homes]) {
    const file = join(directory, 'cgroup.subtree_control');
    writeFileSync(file, CONTROLLERS.map((name) => `+${name}`).join(' '));
    if (readText(join(directory, 'cgroup.controllers')).split(/\s+/).includes(IO))
      writeFileSync(file, `+${IO}`);
  }
}

/** Version 2, in a service: this process, and what it already started. */
function leaveBase(trees: GroupTrees): void {
  if (trees.version !== 2 || trees.own === undefined) return;
  const { base, own } = trees;
  if (!existsSync(own)) mkdirSync(own);
  const list = () => readText(join(base, 'cgroup.procs')).split('\n').filter(Boolean);
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
