import type { Resources } from '../view.ts';
import { Heap } from './heap.ts';
import { fits, type NodeLoad } from './load.ts';

/** What stands in line: who came first is served first; the id decides within one second. */
export interface Waiter {
  readonly instanceId: string;
  readonly createdAt: number;
  readonly needs: Resources;
}

/** A place in the line. One that was given back stays in its lane, without effect, until it comes up. */
export interface Ticket<T extends Waiter> {
  readonly waiter: T;
  readonly lane: Lane<T>;
  isOver: boolean;
}

/** All that wait and need the same. Where one finds no room, none of them does. */
interface Lane<T extends Waiter> {
  readonly key: string;
  readonly needs: Resources;
  readonly heap: Heap<Ticket<T>>;
  live: number;
  /** No node had room, and none has had more since. */
  isFull: boolean;
}

/** `full`: no node has room for one of these needs; `refused`: this one finds no place for a reason of its own. */
export type Outcome = 'placed' | 'full' | 'refused';

/** Beyond this many looks at each freed node and each lane, all lanes are tried again instead. */
const LOOKS_MAX = 1_000_000;
/** Tickets without effect that a lane may have beside those that count. */
const SPENT_MAX = 64;

export function compareWaiters(a: Waiter, b: Waiter): number {
  return (
    a.createdAt - b.createdAt || (a.instanceId < b.instanceId ? -1 : a.instanceId > b.instanceId ? 1 : 0)
  );
}

const compareTickets = <T extends Waiter>(a: Ticket<T>, b: Ticket<T>) => compareWaiters(a.waiter, b.waiter);

const hasRoom = (load: NodeLoad, needs: Resources) => load.standing.unusable === null && fits(load, needs);

/** The instances that need a node, in lanes by what they need. A round costs what it places and the lanes that it tries. */
export class WaitingLine<T extends Waiter> {
  readonly #lanes = new Map<string, Lane<T>>();
  readonly #open = new Set<Lane<T>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(waiter: T): Ticket<T> {
    const { cpu, memoryMib, diskGib } = waiter.needs;
    const key = `${cpu} ${memoryMib} ${diskGib}`;
    let lane = this.#lanes.get(key);
    if (!lane) {
      lane = { key, needs: waiter.needs, heap: new Heap<Ticket<T>>(compareTickets), live: 0, isFull: false };
      this.#lanes.set(key, lane);
    }
    const ticket: Ticket<T> = { waiter, lane, isOver: false };
    lane.heap.push(ticket);
    lane.live++;
    this.#size++;
    if (!lane.isFull) this.#open.add(lane);
    return ticket;
  }

  remove(ticket: Ticket<T>): void {
    if (ticket.isOver) return;
    ticket.isOver = true;
    this.#size--;
    const { lane } = ticket;
    lane.live--;
    if (lane.live === 0) {
      this.#lanes.delete(lane.key);
      this.#open.delete(lane);
    } else if (lane.heap.size > 2 * lane.live + SPENT_MAX) lane.heap.keepOnly((one) => !one.isOver);
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

  /** Offers a place to each that may find one, in order. */
  run(tryPlace: (waiter: T) => Outcome): void {
    const refused: Ticket<T>[] = [];
    const lanes = new Heap<Lane<T>>((a, b) => compareTickets(a.heap.top!, b.heap.top!));
    const offer = (lane: Lane<T>) => {
      while (lane.heap.top?.isOver) lane.heap.pop();
      if (lane.heap.top) lanes.push(lane);
    };
    for (const lane of this.#open) offer(lane);
    for (let lane = lanes.pop(); lane; lane = lanes.pop()) {
      const ticket = lane.heap.top!;
      const outcome = tryPlace(ticket.waiter);
      if (outcome === 'full') {
        lane.isFull = true;
        this.#open.delete(lane);
        continue;
      }
      lane.heap.pop();
      if (outcome === 'placed') this.remove(ticket);
      else refused.push(ticket);
      offer(lane);
    }
    for (const ticket of refused) if (!ticket.isOver) ticket.lane.heap.push(ticket);
  }

  /** All that wait, in no particular order. */
  *[Symbol.iterator](): Generator<T> {
    for (const lane of this.#lanes.values())
      for (const ticket of lane.heap) if (!ticket.isOver) yield ticket.waiter;
  }
}
