import type { InstanceView } from '../views.ts';
import type { InstanceState } from './state.ts';

/** An instance as the network sees it (specification, "Instance", and docs/api.md). */
export function instanceViewOf(state: InstanceState): InstanceView {
  return {
    instance_id: state.instanceId,
    owner: state.owner,
    name: state.name,
    description: state.description,
    cpu: state.cpu,
    memory: state.memoryMib,
    disk: state.diskGib,
    image: state.image,
    ipv6: state.ipv6,
    status: state.phase === 'running' ? 'running' : 'stopped',
    created_at: state.createdAt,
    updated_at: state.updatedAt,
    effective_at: state.effectiveAt,
    placed: state.stamps.address !== null,
    ssh_key: state.sshKey,
    firewall: state.firewall,
    desired: state.desired,
    restart_id: state.restartId,
    node_id: state.nodeId,
    node_address: state.nodeAddress,
    phase: state.phase,
    reason: state.reason,
  };
}
