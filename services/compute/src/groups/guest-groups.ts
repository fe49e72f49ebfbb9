import { existsSync, mkdirSync, readdirSync, rmdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { basename, join } from 'node:path';
import { ControlGroup, type GroupLimits } from './control-group.ts';
import { type GroupTrees, homesIn, prepareHomes } from './trees.ts';

/** How the home of guests' groups ends: nothing in it is ever killed by its number. */
const SUFFIX = '-guests';

export const isOfGuests = (home: string): boolean => basename(home).endsWith(SUFFIX);

function tryRemove(directory: string): boolean {
  try {
    rmdirSync(directory);
    return true;
  } catch {
    return !existsSync(directory);
  }
}

/**
 * Takes away the groups of guests that are gone, and what held them if that was all.
 * @param kept names of groups that somebody is about to enter
 * @returns whether it was all
 */
export function removeEmpty(home: string, kept: ReadonlySet<string> = new Set()): boolean {
  if (!existsSync(home)) return true;
  for (const entry of readdirSync(home, { withFileTypes: true }))
    if (entry.isDirectory() && !kept.has(entry.name)) tryRemove(join(home, entry.name));
  return tryRemove(home);
}

/** A group that nobody else takes away until it is let go of: by then its guest is in it, or there will be none. */
export interface EnteredGroup extends Disposable {
  /** A process enters by `cgroup.procs` of each. */
  readonly directories: readonly string[];
}

/** Of the guests of one compute node: the QEMU of each is in a group of its own, and outlives the node's process there. */
export class GuestGroups {
  readonly #trees: GroupTrees;
  /** What holds all of them, in each tree. */
  readonly homes: readonly string[];
  /** Several guests start at a time. */
  readonly #entering = new Set<string>();

  /** @param name of the node */
  constructor(trees: GroupTrees, name: string) {
    this.#trees = trees;
    this.homes = homesIn(trees, `${name}${SUFFIX}`);
  }

  /** Throws where groups cannot be made: not root, or a read-only tree. */
  prepare(): void {
    prepareHomes(this.#trees, this.homes);
    new ControlGroup(this.homes, this.#trees.version).weigh(availableParallelism());
  }

  /** Makes the group of a machine, anew where it had one that it left. Throws as `prepare` does. */
  create(machineId: string, limits: GroupLimits): EnteredGroup {
    for (const home of this.homes) removeEmpty(home, this.#entering);
    this.prepare();
    const directories = this.homes.map((home) => join(home, machineId));
    for (const directory of directories) mkdirSync(directory, { recursive: true });
    new ControlGroup(directories, this.#trees.version).limit(limits);
    this.#entering.add(machineId);
    return { directories, [Symbol.dispose]: () => this.#entering.delete(machineId) };
  }
}
