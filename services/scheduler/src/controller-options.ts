import type { Logger, Since } from '@skerry/kit';
import type { Health } from './health.ts';
import type { Outbox } from './outbox.ts';
import type { Departures } from './planning/departures.ts';
import type { StandingRules } from './planning/standing.ts';
import type { TrustLevel } from './planning/trust.ts';
import type { Node } from './view.ts';

export interface ControllerOptions {
  readonly health: Health;
  readonly outbox: Outbox;
  /** Which nodes lost what they held, and how often. */
  readonly departures: Departures;
  readonly cpuOvercommit: number;
  readonly manages: (nodeAddress: string) => boolean;
  readonly trust: TrustLevel;
  /** Whether the operator vouches for the node of this address. */
  readonly isListed: (nodeAddress: string) => boolean;
  readonly rules: Omit<StandingRules, 'mayDeclareDead'>;
  /** Whether the operator wants a node empty. */
  readonly isDrained: (node: Node) => boolean;
  /** Whether this scheduler speaks; one that does not only looks on. */
  readonly leads: () => boolean;
  /**
   * Told of the nodes that may run programs and prove their key, each time that it plans and speaks. Not told that there are none while it
   * may be the scheduler that is out of reach: nothing has proved its key to this process yet, or most nodes fell silent.
   */
  readonly onNodes?: (nodes: Iterable<Node>) => void;
  /** Since when nodes get nothing new or are left, by their ids. */
  readonly wrongSince: Since;
  /** Milliseconds since 1970, for people. */
  readonly now: () => number;
  /** Milliseconds of a clock that nobody sets. */
  readonly uptime?: () => number;
  readonly signal: AbortSignal;
  readonly log: Logger;
}
