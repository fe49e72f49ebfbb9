import type { Logger } from '@skerry/kit';
import type { NodeLoad } from './load.ts';

/**
 * What gives all instances of a node another address or another node counts for ever longer before the next such change does: every one
 * of them is told, for good.
 */
const HELD_BASE_MS = 10_000;
const HELD_MAX_MS = 3_600_000;
/** A change after so long is as good as the first. */
export const FORGOTTEN_MS = 2 * HELD_MAX_MS;

/**
 * How long a change counts at least: the first not at all, each that soon follows another twice as long as that one. Pure.
 * @param heldMs of the change before
 * @param keptMs since that one; infinite where there was none
 * @param baseMs of the second
 */
export function heldNext(heldMs: number, keptMs: number, baseMs = HELD_BASE_MS): number {
  if (keptMs === Number.POSITIVE_INFINITY) return 0;
  const nextMs = heldMs === 0 || keptMs >= FORGOTTEN_MS ? baseMs : Math.max(baseMs, 2 * heldMs);
  return Math.min(nextMs, HELD_MAX_MS);
}

/** The last one of a node. */
export interface Departure {
  readonly leftMs: number;
  /** How long it gets nothing new. */
  readonly heldMs: number;
  /** From when on: from when it left, or where it fell silent from when it answered again. */
  readonly fromMs: number;
  readonly isSilent: boolean;
  readonly isAway: boolean;
}

/** Whether a departure counts no more: it was long ago, and nothing is left of the wait that follows a node's return. Pure. */
const isForgotten = ({ leftMs, heldMs, fromMs, isAway }: Departure, nowMs: number): boolean =>
  nowMs - leftMs >= FORGOTTEN_MS && (isAway || nowMs - fromMs >= heldMs);

/** A departure, by the one before it. Pure. */
export function nextDeparture(
  known: Departure | undefined,
  nowMs: number,
  isSilent: boolean,
  graceMs: number,
): Departure {
  const keptMs = known ? nowMs - known.leftMs : Number.POSITIVE_INFINITY;
  const heldMs = heldNext(known?.heldMs ?? 0, keptMs, isSilent ? graceMs : HELD_BASE_MS);
  return { leftMs: nowMs, heldMs, fromMs: nowMs, isSilent, isAway: true };
}

export interface DeparturesOptions {
  /** Whether the operator vouches for the node of this address, and says when it leaves. */
  readonly isListed: (nodeAddress: string) => boolean;
  /** How long a node is silent before what it holds is placed elsewhere. */
  readonly graceMs: number;
  /** As an earlier process knew them, by node. */
  readonly before?: Iterable<readonly [string, Departure]>;
  readonly onChange?: () => void;
  readonly log: Logger;
}

/**
 * Nodes that lost what they held: they sent it away, or were silent until it was placed elsewhere. One that leaves and comes back again and
 * again would have owners' disks lost each time, and a message for each instance: it waits ever longer until it gets something new. Times are
 * milliseconds of a clock that nobody sets.
 */
export class Departures {
  readonly #known: Map<string, Departure>;
  readonly #options: DeparturesOptions;

  constructor(options: DeparturesOptions) {
    this.#options = options;
    this.#known = new Map(options.before);
  }

  /** What the next process has to know, by node. */
  list(): ReadonlyMap<string, Departure> {
    return this.#known;
  }

  /**
   * What others saw while this scheduler was not there. Of a departure that it saw itself it knows more; one that is told by placements is
   * dated when they were decided, up to the grace period later.
   *
   * @returns the nodes of which something is known now
   */
  learn(told: Iterable<readonly [string, Departure]>, nowMs: number): string[] {
    const learned: string[] = [];
    for (const [nodeId, one] of told) {
      const known = this.#known.get(nodeId);
      if (isForgotten(one, nowMs) || (known && one.leftMs <= known.leftMs + this.#options.graceMs)) continue;
      this.#set(nodeId, { ...one, heldMs: Math.max(one.heldMs, known?.heldMs ?? 0) });
      learned.push(nodeId);
    }
    return learned;
  }

  /**
   * What the node holds is to go. Told again while it is away, it is one departure.
   * @param load the node as it is in the plan; undefined where it is not
   */
  left(load: Pick<NodeLoad, 'node' | 'instances'> | undefined, nowMs: number): void {
    if (!load || load.instances.size === 0 || this.#options.isListed(load.node.address)) return;
    this.#note(load.node.nodeId, nowMs, false);
  }

  /**
   * What the node held was placed elsewhere, since it was silent for too long. Nobody said so before, so that also a listed one waits: it is
   * told for each instance, and one silence is one departure.
   */
  fellSilent(nodeId: string, nowMs: number): void {
    const known = this.#known.get(nodeId);
    if (known?.isSilent && nowMs - known.leftMs < this.#options.graceMs) return;
    this.#note(nodeId, nowMs, true);
  }

  /** The node is there, and does not want to be empty. @returns whether it gets nothing new, since it left too often */
  isHeldBack(nodeId: string, nowMs: number): boolean {
    const known = this.#known.get(nodeId);
    if (!known) return false;
    if (isForgotten(known, nowMs)) {
      this.#known.delete(nodeId);
      return false;
    }
    const fromMs = known.isAway && known.isSilent ? nowMs : known.fromMs;
    const stillMs = fromMs + known.heldMs - nowMs;
    if (known.isAway) {
      this.#set(nodeId, { ...known, fromMs, isAway: false });
      if (stillMs > 0)
        this.#options.log.info(
          { node_id: nodeId, seconds: Math.ceil(stillMs / 1000) },
          'the node is back, and gets nothing new for so long: it left, or fell silent, more than once of late',
        );
    }
    return stillMs > 0;
  }

  #note(nodeId: string, nowMs: number, isSilent: boolean): void {
    if (this.#known.get(nodeId)?.isAway) return;
    for (const [id, one] of this.#known) if (isForgotten(one, nowMs)) this.#known.delete(id);
    this.#set(nodeId, nextDeparture(this.#known.get(nodeId), nowMs, isSilent, this.#options.graceMs));
  }

  #set(nodeId: string, departure: Departure): void {
    this.#known.set(nodeId, departure);
    this.#options.onChange?.();
  }
}
