import type { NodeLoad } from './load.ts';

/**
 * What gives all instances of a node another address or another node counts for ever longer before the next such change does: every one
 * of them is told, for good.
 */
const HELD_BASE_MS = 10_000;
const HELD_MAX_MS = 3_600_000;
/** A change after so long is as good as the first. */
const FORGOTTEN_MS = 2 * HELD_MAX_MS;

/**
 * How long a change counts at least: the first not at all, each that soon follows another twice as long as that one. Pure.
 * @param heldMs of the change before
 * @param keptMs since that one; infinite where there was none
 */
export function heldNext(heldMs: number, keptMs: number): number {
  if (keptMs === Number.POSITIVE_INFINITY) return 0;
  if (heldMs === 0 || keptMs >= FORGOTTEN_MS) return HELD_BASE_MS;
  return Math.min(2 * heldMs, HELD_MAX_MS);
}

interface Departure {
  readonly leftMs: number;
  /** How long it gets nothing new, from then on. */
  readonly heldMs: number;
  isAway: boolean;
}

/**
 * Nodes that sent away what they held. One that leaves and comes back again and again would have owners' disks lost each time, and a message
 * for each instance: it waits ever longer until it gets something new. Times are milliseconds of a clock that nobody sets.
 */
export class Departures {
  readonly #known = new Map<string, Departure>();
  readonly #isListed: (nodeAddress: string) => boolean;

  /** @param isListed whether the operator vouches for the node of this address, and says when it leaves */
  constructor(isListed: (nodeAddress: string) => boolean) {
    this.#isListed = isListed;
  }

  /**
   * What the node holds is to go. Told again while it is away, it is one departure.
   * @param load the node as it is in the plan; undefined where it is not
   */
  left(load: Pick<NodeLoad, 'node' | 'instances'> | undefined, nowMs: number): void {
    if (!load || load.instances.size === 0 || this.#isListed(load.node.address)) return;
    const { nodeId } = load.node;
    if (this.#known.get(nodeId)?.isAway) return;
    for (const [id, { leftMs }] of this.#known) if (nowMs - leftMs >= FORGOTTEN_MS) this.#known.delete(id);
    const known = this.#known.get(nodeId);
    const keptMs = known ? nowMs - known.leftMs : Number.POSITIVE_INFINITY;
    this.#known.set(nodeId, { leftMs: nowMs, heldMs: heldNext(known?.heldMs ?? 0, keptMs), isAway: true });
  }

  /** The node is there, and does not want to be empty. @returns whether it gets nothing new, since it left too often */
  isHeldBack(nodeId: string, nowMs: number): boolean {
    const known = this.#known.get(nodeId);
    if (!known) return false;
    known.isAway = false;
    return nowMs - known.leftMs < known.heldMs;
  }
}
