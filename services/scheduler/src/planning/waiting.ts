import type { Resources } from '../view.ts';
import { Heap } from './heap.ts';
import { fits, type NodeLoad } from './load.ts';

/** What stands in line: who came first is served first; the id decides within one second. */
export interface Waiter<T extends Waiter<T>> {
  readonly instanceId: string;
  readonly instance: { readonly createdAt: number; readonly needs: Resources };
  /** Whether it wants a place. One that does not any more stays in its lane, without effect, until it comes up. */
  isWaiting: boolean;
  /** The line's own: the lane that it stands in. */
  lane: Lane<T> | undefined;
}

/** All that wait and need the same. Where one finds no room, none of them does. */
interface Lane<T extends Waiter<T>> {
  readonly key: string;
  readonly needs: Resources;
  readonly heap: Heap<T>;
  live: number;
  /** No node had room, and none has had more since. */
  isFull: boolean;
}

/** `full`: no node has room for one of these needs; `refused`: this one finds no place for a reason of its own. */
export type Outcome = 'placed' | 'full' | 'refused';

/** Beyond this many looks at each freed node and each lane, all lanes are tried again instead. */
const LOOKS_MAX = 1_000_000;
/** Waiters without effect that a lane may have beside those that count. */
const SPENT_MAX = 64;
/** Objects of sizes whose lanes are remembered. */
const SIZES_MAX = 256;

export function compareWaiters<T extends Waiter<T>>(a: T, b: T): number {
  return (
    a.instance.createdAt - b.instance.createdAt ||
    (a.instanceId < b.instanceId ? -1 : a.instanceId > b.instanceId ? 1 : 0)
  );
}

const hasRoom = (load: NodeLoad, needs: Resources) => load.standing.unusable === null && fits(load, needs);

/** Lets those go that have no effect. */
function clear<T extends Waiter<T>>({ heap }: Lane<T>): void {
  heap.keepOnly((one) => {
    if (!one.isWaiting) one.lane = undefined;
    return one.isWaiting;
  });
}

/** The instances that need a node, in lanes by what they need. A round costs what it places and the lanes that it tries. */
export class WaitingLine<T extends Waiter<T>> {
  readonly #lanes = new Map<string, Lane<T>>();
  /** The same by the objects that say what is needed: a million instances share a few of them. */
  readonly #lanesOfSizes = new Map<Resources, Lane<T>>();
  readonly #open = new Set<Lane<T>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** @param waiter that does not wait */
  add(waiter: T): void {
    const lane = this.#laneOf(waiter.instance.needs);
    // One that is still in its lane has its effect again.
    if (waiter.lane !== lane) {
      waiter.lane = lane;
      lane.heap.push(waiter);
    }
    waiter.isWaiting = true;
    lane.live++;
    this.#size++;
    if (!lane.isFull) this.#open.add(lane);
  }

  /** @param waiter that waits */
  remove(waiter: T): void {
    waiter.isWaiting = false;
    this.#size--;
    const lane = waiter.lane!;
    lane.live--;
    if (lane.live === 0) this.#drop(lane);
    else if (lane.heap.size > 2 * lane.live + SPENT_MAX) clear(lane);
  }

  /** Lanes are tried again where one of these nodes has room for them now. */
  reopen(freed: ReadonlySet<NodeLoad>): void {
    const isMany = freed.size * this.#lanes.size > LOOKS_MAX;
    for (const lane of this.#lanes.values()) {
      if (!lane.isFull) continue;
      if (!isMany && ![...freed].some((load) => hasRoom(load, lane.needs))) continue;
      lane.isFull = false;
      this.#open.add(lane);
    }
  }

  /** Offers a place to each that may find one, in order. @param tryPlace adds and removes nobody */
  run(tryPlace: (waiter: T) => Outcome): void {
    const refused: T[] = [];
    const lanes = new Heap<Lane<T>>((a, b) => compareWaiters(a.heap.top!, b.heap.top!));
    const offer = (lane: Lane<T>) => {
      while (lane.heap.top?.isWaiting === false) lane.heap.pop()!.lane = undefined;
      if (lane.heap.top) lanes.push(lane);
    };
    for (const lane of this.#open) offer(lane);
    for (let lane = lanes.pop(); lane; lane = lanes.pop()) {
      const waiter = lane.heap.top!;
      const outcome = tryPlace(waiter);
      if (outcome === 'full') {
        lane.isFull = true;
        this.#open.delete(lane);
        continue;
      }
      lane.heap.pop();
      if (outcome === 'placed') {
        this.remove(waiter);
        waiter.lane = undefined;
      } else refused.push(waiter);
      offer(lane);
    }
    for (const waiter of refused) waiter.lane!.heap.push(waiter);
  }

  /** All that wait, in no particular order. */
  *[Symbol.iterator](): Generator<T> {
    for (const lane of this.#lanes.values())
      for (const waiter of lane.heap) if (waiter.isWaiting) yield waiter;
  }

  #laneOf(needs: Resources): Lane<T> {
    const known = this.#lanesOfSizes.get(needs);
    if (known) return known;
    const key = `${needs.cpu} ${needs.memoryMib} ${needs.diskGib}`;
    let lane = this.#lanes.get(key);
    if (!lane) {
      lane = { key, needs, heap: new Heap<T>(compareWaiters), live: 0, isFull: false };
      this.#lanes.set(key, lane);
    }
    if (this.#lanesOfSizes.size >= SIZES_MAX) this.#lanesOfSizes.clear();
    this.#lanesOfSizes.set(needs, lane);
    return lane;
  }

  /** Nobody waits in it. */
  #drop(lane: Lane<T>): void {
    this.#lanes.delete(lane.key);
    this.#lanesOfSizes.clear();
    this.#open.delete(lane);
    clear(lane);
  }
}
