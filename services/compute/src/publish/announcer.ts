import type { Logger } from '@skerry/kit';
import { NODE_DRAINING, type Reason } from '@skerry/protocol';
import type { Capacity } from '../host/capacity.ts';
import type { AcceleratorChoice } from '../vm/accel.ts';
import { nodeContentOf } from './announcement.ts';
import type { Publisher } from './publisher.ts';

export interface AnnouncerOptions {
  readonly publisher: Pick<Publisher, 'tellNode'>;
  readonly ipv6Prefix: string;
  /** What the node offers, until it is told something else. */
  readonly capacity: Capacity;
  readonly accelerator: AcceleratorChoice;
  /** Why this machine cannot run virtual machines, where it cannot. */
  readonly obstacle: Reason | null;
  readonly programFeatures: readonly string[];
  /** The operator wants the node to be empty. */
  readonly isDraining: boolean;
  /** Where others reach the node; where it listens by default. */
  readonly announceUrl: string | undefined;
  readonly log: Logger;
}

/** Leaving is the operator's word, and comes before what else keeps machines away. */
const DRAINING: Reason = { code: NODE_DRAINING, message: "the node's operator is draining it" };

/** What the network is told of this node, told again whenever it changes. */
export class Announcer {
  readonly #options: AnnouncerOptions;
  #url: string;
  #capacity: Capacity;
  #prefixObstacle: Reason | null = null;

  constructor(options: AnnouncerOptions) {
    this.#options = options;
    this.#url = options.announceUrl ?? '';
    this.#capacity = options.capacity;
  }

  /** Where others reach the node. Empty until it listens, where the operator did not say it. */
  get url(): string {
    return this.#url;
  }

  /** Why the node takes no virtual machines; null where it does. */
  get reason(): Reason | null {
    const { isDraining, obstacle } = this.#options;
    return isDraining ? DRAINING : (obstacle ?? this.#prefixObstacle);
  }

  /** The node listens: from now on the network may hear of it. */
  listensAt(url: string): void {
    const { announceUrl, accelerator } = this.#options;
    this.#url = announceUrl ?? url;
    accelerator.onDecided = () => this.announce();
  }

  announce(): void {
    const { publisher, ipv6Prefix, accelerator, programFeatures, isDraining } = this.#options;
    publisher.tellNode(
      nodeContentOf({
        url: this.#url,
        ipv6Prefix,
        capacity: this.#capacity,
        accelerator: accelerator.decided,
        reason: this.reason,
        programFeatures: isDraining ? [] : programFeatures,
      }),
    );
  }

  /** What the node offers now: schedulers go by it. */
  offer(capacity: Capacity): void {
    const isSame = JSON.stringify(capacity) === JSON.stringify(this.#capacity);
    this.#capacity = capacity;
    if (!isSame) this.announce();
  }

  /** Why the node cannot prove its prefix now, or null where it can. */
  setPrefixObstacle(reason: Reason | null): void {
    const before = this.#prefixObstacle;
    this.#prefixObstacle = reason;
    if (before?.message === reason?.message) return;
    if (reason) this.#options.log.error({ reason }, 'this node accepts no virtual machines');
    this.announce();
  }
}
