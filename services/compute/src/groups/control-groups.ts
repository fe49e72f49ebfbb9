import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, rmdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { ControlGroup, type GroupLimits, type GroupUsage } from './control-group.ts';
import { type GroupTrees, homesIn, prepareHomes } from './trees.ts';

const RUN_BYTES = 4;
/** Processes that were killed are dead within milliseconds, on a machine that is busy within seconds. */
const CLEAR_TURNS_MAX = 250;
const CLEAR_PAUSE_MS = 20;

/** All groups of one compute node's programs. What an earlier process of it left is cleared first. */
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

  /** What holds all groups of the node, in each tree. */
  get homes(): readonly string[] {
    return homesIn(this.#trees, this.#name);
  }

  /** What all of the node's groups take; processor time also of those that are gone. */
  readUsage(): GroupUsage {
    return new ControlGroup(this.homes, this.version).readUsage();
  }

  /** Throws where groups cannot be made: not root, or a read-only tree. */
  prepare(): void {
    for (const home of this.homes.filter((one) => existsSync(one))) this.#removeChildren(home);
    prepareHomes(this.#trees, this.homes);
    new ControlGroup(this.homes, this.version).weigh(availableParallelism());
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
