import type { Firewall } from '../content/instance.ts';
import type { Phase, Reason } from '../content/network.ts';

/** Which message a part of the state was taken from: [when, item hash]. The greater stamp wins, whatever arrived first. */
export type Stamp = readonly [number, string];

/** null: still as the INSTANCE message said. Whatever names an instance comes after it, also within the same second. */
export interface InstanceStamps {
  readonly name: Stamp | null;
  readonly description: Stamp | null;
  readonly firewall: Stamp | null;
  readonly desired: Stamp | null;
  readonly restart: Stamp | null;
  /** Milliseconds, as the scheduler wrote them. */
  readonly allocation: Stamp | null;
  /** Milliseconds, as the node wrote them. */
  readonly status: Stamp | null;
  /** Of the first allocation that gave it an address. */
  readonly address: Stamp | null;
}

/** An instance as core nodes keep it: the fold of its messages. */
export interface InstanceState {
  readonly instanceId: string;
  readonly owner: string;
  readonly name: string;
  readonly description: string;
  readonly cpu: number;
  readonly memoryMib: number;
  readonly diskGib: number;
  readonly image: string;
  readonly sshKey: string;
  readonly firewall: Firewall;
  readonly desired: 'running' | 'stopped';
  readonly restartId: string | null;
  readonly nodeId: string | null;
  readonly nodeAddress: string | null;
  readonly ipv6: string;
  readonly phase: Phase;
  readonly reason: Reason | null;
  /** Unix seconds. */
  readonly createdAt: number;
  readonly updatedAt: number;
  /** Since when it counts against others (protocol's effectiveTime). */
  readonly effectiveAt: number;
  readonly stamps: InstanceStamps;
}

/** Whether stamp `a` is later than `b`; the item hash settles equal times. */
export function isLater(a: Stamp, b: Stamp | null): boolean {
  if (b === null) return true;
  return a[0] !== b[0] ? a[0] > b[0] : a[1] > b[1];
}
