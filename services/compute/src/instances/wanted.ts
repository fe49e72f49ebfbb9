import type { InstanceView } from '@skerry/protocol';
import type { Capacity } from '../host/capacity.ts';
import type { OpenPorts } from '../network/host-ports.ts';

/** What the network wants of an instance on this node. */
export interface Wanted extends OpenPorts {
  readonly isRunning: boolean;
  /** Who may ask for more than the messages do; absent in records of older versions until a core node answers. */
  readonly owner?: string | undefined;
  /** The message that last asked for a restart. */
  readonly restartId: string | null;
  readonly cpu: number;
  readonly memoryMib: number;
  readonly diskGib: number;
  readonly image: string;
  readonly sshKey: string;
  /** Its TLS server expects a header of the PROXY protocol; absent where it does not. */
  readonly proxyProtocol?: true;
}

const rising = (ports: readonly number[]) => [...ports].sort((one, other) => one - other);

export function wantedOf(view: InstanceView): Wanted {
  return {
    owner: view.owner,
    isRunning: view.desired === 'running',
    restartId: view.restart_id,
    cpu: view.cpu,
    memoryMib: view.memory,
    diskGib: view.disk,
    image: view.image,
    sshKey: view.ssh_key,
    allowedPorts: rising(view.firewall.allowedPorts),
    allowedUdpPorts: rising(view.firewall.allowedUdpPorts ?? []),
    ...(view.firewall.proxyProtocol ? { proxyProtocol: true } : {}),
  };
}

/** What of a node an instance takes, running or not. */
export function needOf({ cpu, memoryMib, diskGib }: Capacity): Capacity {
  return { cpu, memoryMib, diskGib };
}
