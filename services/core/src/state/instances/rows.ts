import type { InstanceState } from '@skerry/protocol';
import type { Insertable, Selectable } from 'kysely';
import type { Schema } from '../../store/schema.ts';

export function stateOf(row: Selectable<Schema['instances']>): InstanceState {
  return {
    instanceId: row.instance_id,
    owner: row.owner,
    name: row.name,
    description: row.description,
    cpu: row.cpu,
    memoryMib: row.memory_mib,
    diskGib: row.disk_gib,
    image: row.image,
    sshKey: row.ssh_key,
    firewall: row.firewall,
    desired: row.desired,
    restartId: row.restart_id,
    nodeId: row.node_id,
    nodeAddress: row.node_address,
    ipv6: row.ipv6,
    phase: row.phase,
    reason: row.reason,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    effectiveAt: row.effective_at,
    stamps: row.stamps,
  };
}

export function rowOf(state: InstanceState): Insertable<Schema['instances']> {
  return {
    instance_id: state.instanceId,
    owner: state.owner,
    name: state.name,
    description: state.description,
    cpu: state.cpu,
    memory_mib: state.memoryMib,
    disk_gib: state.diskGib,
    image: state.image,
    ssh_key: state.sshKey,
    firewall: JSON.stringify(state.firewall),
    desired: state.desired,
    restart_id: state.restartId,
    node_id: state.nodeId,
    node_address: state.nodeAddress,
    ipv6: state.ipv6,
    phase: state.phase,
    reason: JSON.stringify(state.reason),
    created_at: state.createdAt,
    updated_at: state.updatedAt,
    effective_at: state.effectiveAt,
    stamps: JSON.stringify(state.stamps),
  };
}
