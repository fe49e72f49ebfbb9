import {
  DEFAULT_FIREWALL,
  type InstanceContent,
  type InstanceControlContent,
  type InstanceUpdateContent,
} from '../content/instance.ts';
import type { AllocationContent, InstanceStatusContent, Reason } from '../content/network.ts';
import { effectiveTime } from '../effective-time.ts';
import type { VerifiedMessage } from '../envelope.ts';
import { type InstanceStamps, type InstanceState, isLater, type Stamp } from './state.ts';

/**
 * The fold of an instance (docs/decisions.md 3): each function takes the state and one valid message and gives the next
 * state. Every part of the state belongs to the latest message that speaks of it, so the order of arrival never matters.
 */

/** What the fold needs of a message beside its content. */
export type Signed = Pick<VerifiedMessage, 'itemHash' | 'sender' | 'time' | 'notedMs'>;

/**
 * What one message does to its instance. Creation comes first; statuses come after allocations, since they count only
 * by the node that is allocated. Within a stage any order gives the same state.
 *
 * @param schedulers addresses whose allocations count
 */
export interface InstanceFold {
  readonly stage: 'creation' | 'change' | 'allocation' | 'status';
  apply(state: InstanceState | undefined, schedulers: ReadonlySet<string>): InstanceState | undefined;
}

/** Of an instance that no placement in force speaks of: nobody has placed it yet, or what placed it was taken back. */
export const AWAITING_NODE: Reason = {
  code: 'AWAITING_NODE',
  message: 'waiting for the scheduler to choose a compute node',
};

function createInstance(head: Signed, owner: string, content: InstanceContent): InstanceState {
  return {
    instanceId: head.itemHash,
    owner,
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
    createdAt: Math.floor(head.time),
    updatedAt: Math.floor(head.time),
    effectiveAt: Math.floor(effectiveTime(head)),
    stamps: {
      name: null,
      description: null,
      firewall: null,
      desired: null,
      restart: null,
      allocation: null,
      status: null,
      address: null,
    },
  };
}

type Settable = 'name' | 'description' | 'firewall';

function applyUpdate(state: InstanceState, head: Signed, content: InstanceUpdateContent): InstanceState {
  const stamp: Stamp = [head.time, head.itemHash];
  const taken = (['name', 'description', 'firewall'] satisfies Settable[]).filter(
    (field) => content[field] !== undefined && isLater(stamp, state.stamps[field]),
  );
  return {
    ...state,
    ...Object.fromEntries(taken.map((field) => [field, content[field]])),
    updatedAt: Math.max(state.updatedAt, Math.floor(head.time)),
    stamps: { ...state.stamps, ...Object.fromEntries(taken.map((field) => [field, stamp])) },
  };
}

function applyControl(state: InstanceState, head: Signed, content: InstanceControlContent): InstanceState {
  const stamp: Stamp = [head.time, head.itemHash];
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
  return {
    ...state,
    desired,
    restartId,
    updatedAt: Math.max(state.updatedAt, Math.floor(head.time)),
    stamps,
  };
}

const reasonOf = ({ node_id, reason }: AllocationContent) =>
  reason ?? (node_id === null ? AWAITING_NODE : null);

/** An instance that had an address once keeps its name while it waits for the next one. */
function withAddress(state: InstanceState, stamp: Stamp): InstanceState {
  const { address } = state.stamps;
  if (address && isLater(stamp, address)) return state;
  return { ...state, stamps: { ...state.stamps, address: stamp } };
}

/** A move to another node forgets what the earlier node said; the caller folds the new node's statuses in after it. */
function applyAllocation(before: InstanceState, head: Signed, content: AllocationContent): InstanceState {
  const stamp: Stamp = [content.decided_at_ms, head.itemHash];
  const state = content.ipv6 === '' ? before : withAddress(before, stamp);
  if (!isLater(stamp, state.stamps.allocation)) return state;
  const moved = content.node_address !== state.nodeAddress;
  return {
    ...state,
    nodeId: content.node_id,
    nodeAddress: content.node_address,
    ipv6: content.ipv6,
    // What the node itself said of the instance outranks the allocation's reason, for as long as it is the same node.
    reason: moved || state.stamps.status === null ? reasonOf(content) : state.reason,
    phase: moved ? 'scheduled' : state.phase,
    stamps: { ...state.stamps, allocation: stamp, ...(moved ? { status: null } : {}) },
  };
}

function applyStatus(state: InstanceState, head: Signed, content: InstanceStatusContent): InstanceState {
  const stamp: Stamp = [content.observed_at_ms, head.itemHash];
  if (!isLater(stamp, state.stamps.status)) return state;
  return {
    ...state,
    phase: content.phase,
    reason: content.reason,
    stamps: { ...state.stamps, status: stamp },
  };
}

export const foldInstance = (head: Signed, owner: string, content: InstanceContent): InstanceFold => ({
  stage: 'creation',
  apply: (state) => state ?? createInstance(head, owner, content),
});

export const foldUpdate = (head: Signed, content: InstanceUpdateContent): InstanceFold => ({
  stage: 'change',
  apply: (state) => state && applyUpdate(state, head, content),
});

export const foldControl = (head: Signed, content: InstanceControlContent): InstanceFold => ({
  stage: 'change',
  apply: (state) => state && applyControl(state, head, content),
});

export const foldAllocation = (head: Signed, content: AllocationContent): InstanceFold => ({
  stage: 'allocation',
  apply: (state, schedulers) =>
    state && schedulers.has(head.sender) ? applyAllocation(state, head, content) : state,
});

export const foldStatus = (head: Signed, content: InstanceStatusContent): InstanceFold => ({
  stage: 'status',
  apply: (state) => (state?.nodeAddress === head.sender ? applyStatus(state, head, content) : state),
});

const STAGES = ['creation', 'change', 'allocation', 'status'] as const;

/** The state that follows from everything that is known of an instance, in whatever order it is given. */
export function foldAll(
  folds: readonly InstanceFold[],
  schedulers: ReadonlySet<string>,
): InstanceState | undefined {
  let state: InstanceState | undefined;
  for (const stage of STAGES) {
    for (const fold of folds) if (fold.stage === stage) state = fold.apply(state, schedulers);
  }
  return state;
}
