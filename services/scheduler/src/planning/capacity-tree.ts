import type { Resources } from '../view.ts';
import { freeOf, type NodeLoad, weightOf } from './load.ts';

const UNUSABLE = -1;
const NOWHERE = -1;
/** Where the figures of a place are: its weight is the first. */
const [CPU, MEMORY, DISK, WIDTH] = [1, 2, 3, 4];

type Refuses = (load: NodeLoad) => boolean;

interface Wanted {
  readonly needs: Resources;
  readonly refuses: Refuses | undefined;
}

/** What a search found so far. */
interface Best {
  weight: number;
  slot: number;
}

/**
 * The nodes in order of their ids, as the leaves of a tree whose inner places know the greatest weight and the most free
 * cores, memory and disk below them. A change of one node costs the logarithm of their number; so does the search for
 * the best one that has room, unless those that have the most of one thing lack another: then at worst all are looked at.
 * A node that comes or goes makes the tree anew.
 */
export class CapacityTree {
  #loads: NodeLoad[] = [];
  /** Leaves; a power of two. Place 1 is the root, place `size + slot` a leaf. */
  #size = 1;
  /** Of each place four figures side by side, as one look at memory brings them: weight, cores, memory, disk. */
  #figures = new Float64Array(2 * WIDTH).fill(UNUSABLE);
  #usable = 0;

  /** Nodes that may get something new. */
  get usable(): number {
    return this.#usable;
  }

  /** The most that any one usable node has free of each; below 0 where there is none. */
  get freest(): Resources {
    const [, cpu, memoryMib, diskGib] = this.#figures.subarray(WIDTH, 2 * WIDTH);
    return { cpu: cpu!, memoryMib: memoryMib!, diskGib: diskGib! };
  }

  /** @param loads every node there is */
  rebuild(loads: Iterable<NodeLoad>): void {
    for (const load of this.#loads) load.slot = NOWHERE;
    this.#loads = [...loads].sort((a, b) => (a.node.nodeId < b.node.nodeId ? -1 : 1));
    this.#size = 2 ** Math.ceil(Math.log2(Math.max(1, this.#loads.length)));
    this.#figures = new Float64Array(2 * this.#size * WIDTH).fill(UNUSABLE);
    this.#usable = 0;
    for (const [slot, load] of this.#loads.entries()) {
      load.slot = slot;
      this.#setLeaf(slot, load);
    }
    for (let at = this.#size - 1; at >= 1; at--) this.#join(at);
  }

  /** To be told when what a node holds or is good for has changed. */
  update(load: NodeLoad): void {
    const { slot } = load;
    if (slot === NOWHERE) return;
    this.#setLeaf(slot, load);
    // What a place does not show is nothing to those above it.
    for (let at = (this.#size + slot) >> 1; at >= 1 && this.#join(at); at >>= 1);
  }

  /**
   * The usable node of the greatest weight that has room, the one with the smaller id where two weigh the same.
   * @param refuses nodes that will not do although they have room
   */
  find(needs: Resources, refuses?: Refuses): NodeLoad | undefined {
    const best: Best = { weight: UNUSABLE, slot: Number.POSITIVE_INFINITY };
    this.#search(best, { needs, refuses }, 1, 0, this.#size);
    return this.#loads[best.slot];
  }

  /** @param slot the first below `at`, of `width` */
  #search(best: Best, wanted: Wanted, at: number, slot: number, width: number): void {
    const figures = this.#figures;
    const first = WIDTH * at;
    const weight = figures[first]!;
    if (weight === UNUSABLE || weight < best.weight || (weight === best.weight && slot > best.slot)) return;
    const { needs, refuses } = wanted;
    if (
      figures[first + CPU]! < needs.cpu ||
      figures[first + MEMORY]! < needs.memoryMib ||
      figures[first + DISK]! < needs.diskGib
    )
      return;
    if (width === 1) {
      if (refuses?.(this.#loads[slot]!)) return;
      best.weight = weight;
      best.slot = slot;
      return;
    }
    const half = width / 2;
    const isLeftFirst = figures[2 * first]! >= figures[2 * first + WIDTH]!;
    if (isLeftFirst) this.#search(best, wanted, 2 * at, slot, half);
    this.#search(best, wanted, 2 * at + 1, slot + half, half);
    if (!isLeftFirst) this.#search(best, wanted, 2 * at, slot, half);
  }

  #setLeaf(slot: number, load: NodeLoad): void {
    const figures = this.#figures;
    const first = WIDTH * (this.#size + slot);
    const wasUsable = figures[first] !== UNUSABLE;
    const isUsable = load.standing.unusable === null;
    this.#usable += Number(isUsable) - Number(wasUsable);
    if (!isUsable) {
      figures.fill(UNUSABLE, first, first + WIDTH);
      return;
    }
    const free = freeOf(load);
    figures[first] = weightOf(load);
    figures[first + CPU] = free.cpu;
    figures[first + MEMORY] = free.memoryMib;
    figures[first + DISK] = free.diskGib;
  }

  /** @returns whether the place shows anything else than before */
  #join(at: number): boolean {
    const figures = this.#figures;
    const first = WIDTH * at;
    const left = 2 * first;
    const right = left + WIDTH;
    let isChanged = false;
    for (let one = 0; one < WIDTH; one++) {
      const [a, b] = [figures[left + one]!, figures[right + one]!];
      const most = a > b ? a : b;
      if (figures[first + one] === most) continue;
      figures[first + one] = most;
      isChanged = true;
    }
    return isChanged;
  }
}
