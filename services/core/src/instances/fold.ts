import {
  type AllocationContent,
  DEFAULT_FIREWALL,
  type InstanceContent,
  type InstanceControlContent,
  type InstanceStatusContent,
  type InstanceUpdateContent,
  type Reason,
} from '@skerry/protocol';
import type { InstanceStamps, Stamp } from '../db/schema.ts';
import { type InstanceState, isLater } from './state.ts';

/**
 * The fold of an instance (design decision 5): each function takes the state and one valid message and gives the next
 * state. Every part of the state belongs to the latest message that speaks of it, so the order of arrival never matters.
 */

export interface MessageHead {
  readonly itemHash: string;
  readonly sender: string;
  /** Unix seconds. */
  readonly timestamp: number;
}

const AWAITING_NODE: Reason = {
  code: 'AWAITING_NODE',
  message: 'waiting for the scheduler to choose a compute node',
};

export function createInstance(head: MessageHead, content: InstanceContent): InstanceState {
  return {
    instanceId: head.itemHash,
    owner: head.sender,
    name: content.name,
    description: content.description ?? '',
    cpu: content.cpu,
    memoryMib: content.memory,
    diskGib: content.disk,
    image: content.image,
    sshKey: content.ssh_key.trim(),
    firewall: content.firewall ?? DEFAULT_FIREWALL,
    desired: 'running',
    restartId: null,
    nodeId: null,
    nodeAddress: null,
    ipv6: '',
    phase: 'scheduled',
    reason: AWAITING_NODE,
    createdAt: head.timestamp,
    updatedAt: head.timestamp,
    stamps: {
      name: null,
      description: null,
      firewall: null,
      desired: null,
      restart: null,
      allocation: null,
      status: null,
    },
  };
}

type Settable = 'name' | 'description' | 'firewall';

export function applyUpdate(
  state: InstanceState,
  head: MessageHead,
  content: InstanceUpdateContent,
): InstanceState {
  const stamp: Stamp = [head.timestamp, head.itemHash];
  const taken = (['name', 'description', 'firewall'] satisfies Settable[]).filter(
    (field) => content[field] !== undefined && isLater(stamp, state.stamps[field]),
  );
  return {
    ...state,
    ...Object.fromEntries(taken.map((field) => [field, content[field]])),
    updatedAt: Math.max(state.updatedAt, head.timestamp),
    stamps: { ...state.stamps, ...Object.fromEntries(taken.map((field) => [field, stamp])) },
  };
}

export function applyControl(
  state: InstanceState,
  head: MessageHead,
  content: InstanceControlContent,
): InstanceState {
  const stamp: Stamp = [head.timestamp, head.itemHash];
  const stamps: { -readonly [K in keyof InstanceStamps]: InstanceStamps[K] } = { ...state.stamps };
  let { desired, restartId } = state;
  if (isLater(stamp, stamps.desired)) {
    desired = content.action === 'stop' ? 'stopped' : 'running';
    stamps.desired = stamp;
  }
  if (content.action === 'restart' && isLater(stamp, stamps.restart)) {
    restartId = head.itemHash;
    stamps.restart = stamp;
  }
  return { ...state, desired, restartId, updatedAt: Math.max(state.updatedAt, head.timestamp), stamps };
}

const reasonOf = ({ node_id, reason }: AllocationContent) =>
  reason ?? (node_id === null ? AWAITING_NODE : null);

/** What the allocated node last said of the instance, and the hash of the message that says so. */
export interface ObservedStatus {
  readonly itemHash: string;
  readonly content: InstanceStatusContent;
}

/**
 * @param observed what the newly chosen node already said, where its status arrived before the allocation
 */
export function applyAllocation(
  state: InstanceState,
  head: MessageHead,
  content: AllocationContent,
  observed: ObservedStatus | undefined,
): InstanceState {
  const stamp: Stamp = [content.decided_at_ms, head.itemHash];
  if (!isLater(stamp, state.stamps.allocation)) return state;
  const moved = content.node_address !== state.nodeAddress;
  const allocated: InstanceState = {
    ...state,
    nodeId: content.node_id,
    nodeAddress: content.node_address,
    ipv6: content.ipv6,
    // What the node itself said of the instance outranks the allocation's reason, for as long as it is the same node.
    reason: moved || state.stamps.status === null ? reasonOf(content) : state.reason,
    phase: moved ? 'scheduled' : state.phase,
    stamps: { ...state.stamps, allocation: stamp, ...(moved ? { status: null } : {}) },
  };
  return observed === undefined ? allocated : applyStatus(allocated, observed.itemHash, observed.content);
}

/** The caller has checked that the status was signed by the node the instance is allocated to. */
export function applyStatus(
  state: InstanceState,
  itemHash: string,
  content: InstanceStatusContent,
): InstanceState {
  const stamp: Stamp = [content.observed_at_ms, itemHash];
  if (!isLater(stamp, state.stamps.status)) return state;
  return {
    ...state,
    phase: content.phase,
    reason: content.reason,
    stamps: { ...state.stamps, status: stamp },
  };
}
