import type { Resources } from '../view.ts';
import { freeOf, type NodeLoad, weightOf } from './load.ts';

const UNUSABLE = -1;

/**
 * The nodes in order of their ids, as the leaves of a tree whose inner places know the greatest weight and the most free
 * cores, memory and disk below them. A change of one node costs the logarithm of their number; so does the search for
 * the best one that has room, unless those that have the most of one thing lack another: then at worst all are looked at.
 * A node that comes or goes makes the tree anew.
 */
export class CapacityTree {
  #loads: NodeLoad[] = [];
  #slots = new Map<NodeLoad, number>();
  /** Leaves; a power of two. Place 1 is the root, place `size + slot` a leaf. */
  #size = 1;
  #weight = new Float64Array(2).fill(UNUSABLE);
  #cpu = new Float64Array(2).fill(UNUSABLE);
  #memory = new Float64Array(2).fill(UNUSABLE);
  #disk = new Float64Array(2).fill(UNUSABLE);
  #usable = 0;

  /** Nodes that may get something new. */
  get usable(): number {
    return this.#usable;
  }

  /** The most that any one usable node has free of each; below 0 where there is none. */
  get freest(): Resources {
    return { cpu: this.#cpu[1]!, memoryMib: this.#memory[1]!, diskGib: this.#disk[1]! };
  }

  /** @param loads every node there is */
  rebuild(loads: Iterable<NodeLoad>): void {
    this.#loads = [...loads].sort((a, b) => (a.node.nodeId < b.node.nodeId ? -1 : 1));
    this.#slots = new Map(this.#loads.map((load, slot) => [load, slot]));
    this.#size = 2 ** Math.ceil(Math.log2(Math.max(1, this.#loads.length)));
    const create = () => new Float64Array(2 * this.#size).fill(UNUSABLE);
    [this.#weight, this.#cpu, this.#memory, this.#disk] = [create(), create(), create(), create()];
    this.#usable = 0;
    for (const [slot, load] of this.#loads.entries()) this.#setLeaf(slot, load);
    for (let at = this.#size - 1; at >= 1; at--) this.#join(at);
  }

  /** To be told when what a node holds or is good for has changed. */
  update(load: NodeLoad): void {
    const slot = this.#slots.get(load);
    if (slot === undefined) return;
    this.#setLeaf(slot, load);
    for (let at = (this.#size + slot) >> 1; at >= 1; at >>= 1) this.#join(at);
  }

  /**
   * The usable node of the greatest weight that has room, the one with the smaller id where two weigh the same.
   * @param refuses nodes that will not do although they have room
   */
  find(needs: Resources, refuses?: (load: NodeLoad) => boolean): NodeLoad | undefined {
    let bestWeight = UNUSABLE;
    let bestSlot = Number.POSITIVE_INFINITY;
    const visit = (at: number, firstSlot: number, width: number): void => {
      const weight = this.#weight[at]!;
      if (weight === UNUSABLE || weight < bestWeight || (weight === bestWeight && firstSlot > bestSlot))
        return;
      if (
        this.#cpu[at]! < needs.cpu ||
        this.#memory[at]! < needs.memoryMib ||
        this.#disk[at]! < needs.diskGib
      )
        return;
      if (width === 1) {
        if (weight === bestWeight && firstSlot > bestSlot) return;
        if (refuses?.(this.#loads[firstSlot]!)) return;
        bestWeight = weight;
        bestSlot = firstSlot;
        return;
      }
      const half = width / 2;
      const visitLeft = () => visit(2 * at, firstSlot, half);
      const visitRight = () => visit(2 * at + 1, firstSlot + half, half);
      if (this.#weight[2 * at]! >= this.#weight[2 * at + 1]!) {
        visitLeft();
        visitRight();
      } else {
        visitRight();
        visitLeft();
      }
    };
    visit(1, 0, this.#size);
    return this.#loads[bestSlot];
  }

  #setLeaf(slot: number, load: NodeLoad): void {
    const at = this.#size + slot;
    const wasUsable = this.#weight[at] !== UNUSABLE;
    const isUsable = load.standing.unusable === null;
    this.#usable += Number(isUsable) - Number(wasUsable);
    const free = freeOf(load);
    this.#weight[at] = isUsable ? weightOf(load) : UNUSABLE;
    this.#cpu[at] = isUsable ? free.cpu : UNUSABLE;
    this.#memory[at] = isUsable ? free.memoryMib : UNUSABLE;
    this.#disk[at] = isUsable ? free.diskGib : UNUSABLE;
  }

  /** Spelled out: this is where a plan spends its time. */
  #join(at: number): void {
    const left = 2 * at;
    const right = left + 1;
    const [weight, cpu, memory, disk] = [this.#weight, this.#cpu, this.#memory, this.#disk];
    weight[at] = weight[left]! > weight[right]! ? weight[left]! : weight[right]!;
    cpu[at] = cpu[left]! > cpu[right]! ? cpu[left]! : cpu[right]!;
    memory[at] = memory[left]! > memory[right]! ? memory[left]! : memory[right]!;
    disk[at] = disk[left]! > disk[right]! ? disk[left]! : disk[right]!;
  }
}
