import type { Firewall, Phase, Reason } from '@skerry/protocol';
import type { InstanceStamps, Stamp } from '../../store/schema.ts';

/** An instance as the core node keeps it: the fold of its messages. */
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
