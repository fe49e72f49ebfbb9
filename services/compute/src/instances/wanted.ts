import type { InstanceView } from '@skerry/protocol';

/** What the network wants of an instance on this node. */
export interface Wanted {
  readonly isRunning: boolean;
  /** The message that last asked for a restart. */
  readonly restartId: string | null;
  readonly cpu: number;
  readonly memoryMib: number;
  readonly diskGib: number;
  readonly image: string;
  readonly sshKey: string;
  readonly allowedPorts: readonly number[];
}

export function wantedOf(view: InstanceView): Wanted {
  return {
    isRunning: view.desired === 'running',
    restartId: view.restart_id,
    cpu: view.cpu,
    memoryMib: view.memory,
    diskGib: view.disk,
    image: view.image,
    sshKey: view.ssh_key,
    allowedPorts: [...view.firewall.allowedPorts].sort((one, other) => one - other),
  };
}
