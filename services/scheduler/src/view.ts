import {
  AppError,
  AWAITING_NODE,
  checkImage,
  type InstanceView,
  isBeyondStart,
  type Reason,
} from '@skerry/protocol';

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
  /** Its place in the line: its timestamp, or when a core node first had it where it came late. Unix seconds. */
  readonly createdAt: number;
  /** Why no node could start it; it keeps the place that it has, and gets none. */
  readonly barred?: Reason;
  /** Where it was, and stays: what placed it was taken back, and nobody has said anything else. */
  readonly kept?: Placement | undefined;
  /** The node that says it can never start. Whether that frees its room hangs on how far the node is believed. */
  readonly failedOn?: string;
}

/** All that the scheduler knows of the network. Nothing in it is the scheduler's own: it can be read again at any time. */
export interface View {
  readonly nodes: Map<string, Node>;
  readonly instances: Map<string, Instance>;
  /** How many instances each node holds, as they are told. */
  readonly holders: Map<string, number>;
}

/** Announcing costs strangers nothing; a node that holds an instance, is listed or was measured is never turned away. */
export const NODES_MAX = 10_000;

export function createView(): View {
  return { nodes: new Map(), instances: new Map(), holders: new Map() };
}

const SHARED_MAX = 100_000;
const sharedTexts = new Map<string, string>();
const sharedSizes = new Map<string, Resources>();

/** The same object for the same key: of a million instances most say one of a few things. */
function share<T>(known: Map<string, T>, key: string, value: T): T {
  const found = known.get(key);
  if (found !== undefined) return found;
  if (known.size >= SHARED_MAX) known.clear();
  known.set(key, value);
  return value;
}

const shareText = (text: string | null) => (text === null ? null : share(sharedTexts, text, text));

/** Of what can never start. */
export const NOTHING: Resources = { cpu: 0, memoryMib: 0, diskGib: 0 };

function needsOf({ cpu, memory: memoryMib, disk: diskGib }: InstanceView): Resources {
  return share(sharedSizes, `${cpu} ${memoryMib} ${diskGib}`, { cpu, memoryMib, diskGib });
}

function barOf({ image }: InstanceView): Reason | undefined {
  try {
    checkImage(image);
    return undefined;
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { code: error.code, message: error.message };
  }
}

export function parseInstance(view: InstanceView): Instance {
  const barred = barOf(view);
  const nodeId = shareText(view.node_id);
  const isFailed = isBeyondStart(view.phase, view.reason);
  return {
    instanceId: view.instance_id,
    // What anybody can judge needs nobody's word.
    needs: barred && isFailed ? NOTHING : needsOf(view),
    ...(barred && { barred }),
    ...(isFailed && nodeId !== null && { failedOn: nodeId }),
    createdAt: view.effective_at ?? view.created_at,
    nodeId,
    nodeAddress: shareText(view.node_address),
    ipv6: view.ipv6,
    reason: view.reason,
  };
}

function isNewer(node: Node, known: Node): boolean {
  if (node.announcedAtMs !== known.announcedAtMs) return node.announcedAtMs > known.announcedAtMs;
  return node.itemHash > known.itemHash;
}

/**
 * Takes in an announcement: the newest of a sender by (timestamp, item hash) counts, in whatever order they come. Says whether it did.
 *
 * @param isKept whether a node is more than announced: it has a place however many are
 */
export function applyNode(
  view: View,
  node: Node,
  isKept: (node: Node) => boolean = () => false,
  nodesMax = NODES_MAX,
): boolean {
  const known = view.nodes.get(node.nodeId);
  const isWelcome = view.nodes.size < nodesMax || view.holders.has(node.nodeId) || isKept(node);
  if (known ? !isNewer(node, known) : !isWelcome) return false;
  view.nodes.set(node.nodeId, node);
  return true;
}

function countHolder({ holders }: View, instance: Instance | undefined, step: 1 | -1): void {
  const nodeId = instance?.nodeId ?? instance?.kept?.nodeId;
  if (!nodeId) return;
  const count = (holders.get(nodeId) ?? 0) + step;
  if (count > 0) holders.set(nodeId, count);
  else holders.delete(nodeId);
}

/** Whether no placement of it is in force: it is new, or what placed it was taken back. */
export const isUnsaid = ({ nodeId, reason }: Placement): boolean =>
  nodeId === null && reason?.code === AWAITING_NODE.code;

/** An instance as it is told, which keeps the place that it had while no placement of it is in force: its disk is there. */
function keepPlace(told: Instance, before: Instance | undefined): Instance {
  if (!before || !isUnsaid(told)) return told;
  const { nodeId, nodeAddress, ipv6 } = before;
  const kept = nodeId === null ? before.kept : { nodeId, nodeAddress, ipv6, reason: null };
  return kept ? { ...told, kept } : told;
}

/**
 * Takes in an instance as the core node tells it: each telling is whole, the last one counts. A FORGET of what placed it is no decision of
 * a scheduler's.
 *
 * @param before as it was known before
 * @returns what is known of it now
 */
export function applyInstance(
  view: View,
  told: Instance,
  before: Instance | undefined = view.instances.get(told.instanceId),
): Instance {
  const instance = keepPlace(told, before);
  countHolder(view, view.instances.get(told.instanceId), -1);
  countHolder(view, instance, 1);
  view.instances.set(told.instanceId, instance);
  return instance;
}

/** @returns whether there was such an instance */
export function removeInstance(view: View, instanceId: string): boolean {
  countHolder(view, view.instances.get(instanceId), -1);
  return view.instances.delete(instanceId);
}

/** Whether two placements ask the same of the network. The reason counts only where there is no node: with a node it is the node's to tell. */
export function isSamePlacement(a: Placement, b: Placement): boolean {
  if (a.nodeId !== b.nodeId || a.nodeAddress !== b.nodeAddress || a.ipv6 !== b.ipv6) return false;
  return a.nodeId !== null || (a.reason?.code === b.reason?.code && a.reason?.message === b.reason?.message);
}
