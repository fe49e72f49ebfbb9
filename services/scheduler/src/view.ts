import type { InstanceView, Reason } from '@skerry/protocol';

/** What an instance needs or a node has. */
export interface Resources {
  /** Virtual cores. */
  readonly cpu: number;
  readonly memoryMib: number;
  readonly diskGib: number;
}

/** A compute node, as its own newest announcement says. */
export interface Node {
  readonly nodeId: string;
  readonly address: string;
  /** Without a slash at the end. */
  readonly url: string;
  /** The /64 that its instances get addresses from; null where it has none. */
  readonly ipv6Prefix: string | null;
  /** Whole cores of the machine; what may be promised of them is the plan's matter. */
  readonly capacity: Resources;
  readonly features: readonly string[];
  readonly version: string;
  /** Why the node can hold nothing, where it says so. */
  readonly reason: Reason | null;
  /** Milliseconds since 1970, as the node says; with `itemHash` the order of announcements. */
  readonly announcedAtMs: number;
  readonly itemHash: string;
}

/** Where an instance is, or why it is nowhere. */
export interface Placement {
  readonly nodeId: string | null;
  readonly nodeAddress: string | null;
  /** Empty where there is no node. */
  readonly ipv6: string;
  readonly reason: Reason | null;
}

export interface Instance extends Placement {
  readonly instanceId: string;
  readonly needs: Resources;
  /** Unix seconds. */
  readonly createdAt: number;
}

/** All that the scheduler knows of the network. Nothing in it is the scheduler's own: it can be read again at any time. */
export interface View {
  readonly nodes: Map<string, Node>;
  readonly instances: Map<string, Instance>;
}

/** Announcing costs strangers nothing; a node that holds an instance is never turned away. */
export const NODES_MAX = 10_000;

export function createView(): View {
  return { nodes: new Map(), instances: new Map() };
}

export function parseInstance(view: InstanceView): Instance {
  return {
    instanceId: view.instance_id,
    needs: { cpu: view.cpu, memoryMib: view.memory, diskGib: view.disk },
    createdAt: view.created_at,
    nodeId: view.node_id,
    nodeAddress: view.node_address,
    ipv6: view.ipv6,
    reason: view.reason,
  };
}

function holdsInstance(view: View, nodeId: string): boolean {
  for (const instance of view.instances.values()) if (instance.nodeId === nodeId) return true;
  return false;
}

function isNewer(node: Node, known: Node): boolean {
  if (node.announcedAtMs !== known.announcedAtMs) return node.announcedAtMs > known.announcedAtMs;
  return node.itemHash > known.itemHash;
}

/** Takes in an announcement: the newest of a sender by (timestamp, item hash) counts, in whatever order they come. Says whether it did. */
export function applyNode(view: View, node: Node, nodesMax = NODES_MAX): boolean {
  const known = view.nodes.get(node.nodeId);
  if (known ? !isNewer(node, known) : view.nodes.size >= nodesMax && !holdsInstance(view, node.nodeId))
    return false;
  view.nodes.set(node.nodeId, node);
  return true;
}

/** Takes in an instance as the core node tells it: each telling is whole, the last one counts. */
export function applyInstance(view: View, instance: Instance): void {
  view.instances.set(instance.instanceId, instance);
}

/** Whether two placements ask the same of the network. The reason counts only where there is no node: with a node it is the node's to tell. */
export function isSamePlacement(a: Placement, b: Placement): boolean {
  if (a.nodeId !== b.nodeId || a.nodeAddress !== b.nodeAddress || a.ipv6 !== b.ipv6) return false;
  return a.nodeId !== null || (a.reason?.code === b.reason?.code && a.reason?.message === b.reason?.message);
}
