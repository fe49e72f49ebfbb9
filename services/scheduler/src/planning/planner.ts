import type { Reason } from '@skerry/protocol';
import {
  type Instance,
  isSamePlacement,
  NOTHING,
  type Node,
  type Placement,
  type Resources,
} from '../view.ts';
import { CapacityTree } from './capacity-tree.ts';
import { IdTable, type Linked } from './id-table.ts';
import { addLoad, addressOn, createLoad, headOf, isBeyond, limitsOf, type NodeLoad } from './load.ts';
import { explainShortage, NO_CAPACITY, NO_NODES } from './shortage.ts';
import type { Standing } from './standing.ts';
import { compareWaiters, type Outcome, type Waiter, WaitingLine } from './waiting.ts';

export interface PlannerOptions {
  /** Virtual cores that may be promised for each core of a node. Memory and disk are promised once. */
  readonly cpuOvercommit: number;
  /** Whether this scheduler places on the node of this address; instances on others are left alone. */
  readonly manages: (nodeAddress: string) => boolean;
}

/** `readdressed`: the same node with another network. */
export type DecisionKind = 'placed' | 'moved' | 'readdressed' | 'refused';

/** What the network is to be told of an instance. */
export interface Decision {
  readonly instanceId: string;
  readonly placement: Placement;
  readonly kind: DecisionKind;
  /** The node that it had, or null. */
  readonly from: string | null;
}

interface Entry extends Waiter<Entry>, Linked<Entry> {
  /** As the network tells it. */
  instance: Instance;
  /** What is decided. */
  placement: Placement;
  /** What the network was told, or is being told. */
  said: Placement;
  load: NodeLoad | null;
  /** What is booked for it on its node. */
  held: Resources;
  /** Whether it is among what changed since the last run. */
  isChanged: boolean;
}

function kindOf(from: string | null, to: string | null): DecisionKind {
  if (to === null) return 'refused';
  if (from === null) return 'placed';
  return from === to ? 'readdressed' : 'moved';
}

/** Most of what is told is what was decided. */
const isSameInstance = ({ placement, said, instance: known }: Entry, instance: Instance) =>
  known.createdAt === instance.createdAt &&
  known.failedOn === instance.failedOn &&
  known.needs.cpu === instance.needs.cpu &&
  known.needs.memoryMib === instance.needs.memoryMib &&
  known.needs.diskGib === instance.needs.diskGib &&
  isSamePlacement(placement, instance) &&
  isSamePlacement(said, instance);

/** What an instance takes of a node. Only the node itself can say that it never starts there, so only of one that is believed it counts. */
const heldOn = ({ instance }: Entry, { node, standing }: NodeLoad): Resources =>
  instance.failedOn === node.nodeId && standing.isBelieved ? NOTHING : instance.needs;

export const NODE_GONE: Reason = { code: 'NODE_GONE', message: 'its node has left the network' };

const nowhere = (reason: Reason): Placement => ({ nodeId: null, nodeAddress: null, ipv6: '', reason });

/**
 * Where every instance should be, kept up to date change by change. What it comes to follows from the nodes and instances
 * alone, whatever the order in which it was told of them. What is placed stays, unless its node leaves (or is gone) and
 * another has room; what is not placed goes, oldest first, to the usable node of the greatest weight that has room. One
 * that finds no room does not hold up those behind it.
 */
export class Planner {
  readonly #options: PlannerOptions;
  readonly #tree = new CapacityTree();
  readonly #loads = new Map<string, NodeLoad>();
  readonly #entries = new IdTable<Entry>();
  readonly #line = new WaitingLine<Entry>();
  /** Instances whose node is not known, by node. */
  readonly #orphans = new Map<string, Set<Entry>>();
  /** Nodes with more room than in the last run. */
  readonly #freed = new Set<NodeLoad>();
  /** What may differ from what was told, or has no words yet for why it waits: those that are still marked. */
  #changed: Entry[] = [];
  #isTreeOld = false;
  #hadNodes = false;

  constructor(options: PlannerOptions) {
    this.#options = options;
  }

  get loads(): ReadonlyMap<string, NodeLoad> {
    return this.#loads;
  }

  get size(): number {
    return this.#entries.size;
  }

  get instanceIds(): Iterable<string> {
    return this.#entries.ids();
  }

  /** Instances without a node, in the order in which they are served. */
  listWaiting(): { instanceId: string; reason: Reason | null }[] {
    return [...this.#line]
      .filter(({ load }) => load === null)
      .sort(compareWaiters)
      .map(({ instanceId, placement }) => ({ instanceId, reason: placement.reason }));
  }

  /**
   * Instances without a node, those on nodes that they should leave, and of the former those that are too large in something.
   * @param largest each of what the largest node has of it
   */
  count(largest: Resources): { waiting: number; leaving: number; oversized: number } {
    let [waiting, oversized] = [0, 0];
    for (const { load, instance } of this.#line) {
      if (load !== null) continue;
      waiting++;
      if (isBeyond(instance.needs, largest)) oversized++;
    }
    return { waiting, leaving: this.#line.size - waiting, oversized };
  }

  /** Where an instance is to be, and on a node that is of no use now also why. */
  get(instanceId: string): Placement | undefined {
    const entry = this.#entries.get(instanceId);
    if (!entry) return undefined;
    const { placement, load } = entry;
    const reason = load ? load.standing.unusable : placement.nodeId === null ? placement.reason : null;
    const { nodeId, nodeAddress, ipv6 } = placement;
    return { nodeId, nodeAddress, ipv6, reason };
  }

  getInstance(instanceId: string): Instance | undefined {
    return this.#entries.get(instanceId)?.instance;
  }

  /** A node that is new or is not what it was. */
  setNode(node: Node, standing: Standing): void {
    if (!this.#options.manages(node.address)) return;
    const load = this.#loads.get(node.nodeId);
    if (!load) {
      this.#addNode(node, standing);
      return;
    }
    const isElsewhere = node.ipv6Prefix !== load.node.ipv6Prefix || node.address !== load.node.address;
    const wasLeaving = load.standing.leaving !== null;
    const wasBelieved = load.standing.isBelieved;
    load.node = node;
    load.limits = limitsOf(node, this.#options.cpuOvercommit);
    load.standing = standing;
    if (isElsewhere) load.addressHead = headOf(node);
    this.#touch(load);
    if (isElsewhere || wasBelieved !== standing.isBelieved) this.#rebook([...load.instances]);
    else if (wasLeaving !== (standing.leaving !== null))
      for (const instanceId of load.instances) this.#lineUp(this.#entries.get(instanceId)!);
  }

  removeNode(nodeId: string): void {
    const load = this.#loads.get(nodeId);
    if (!load) return;
    this.#loads.delete(nodeId);
    this.#freed.delete(load);
    this.#isTreeOld = true;
    this.#rebook([...load.instances]);
  }

  /** An instance as the network tells it, with what is decided for it and on its way. */
  setInstance(instance: Instance): void {
    const { instanceId } = instance;
    const known = this.#entries.get(instanceId);
    if (known && isSameInstance(known, instance)) {
      known.instance = instance;
      known.said = instance;
      return;
    }
    if (known) this.#remove(known);
    const entry: Entry = {
      instanceId,
      instance,
      placement: instance.kept ?? instance,
      said: instance,
      load: null,
      held: NOTHING,
      lane: undefined,
      next: undefined,
      mayBeAlike: false,
      isWaiting: false,
      isChanged: false,
    };
    this.#entries.add(entry);
    this.#book(entry);
  }

  removeInstance(instanceId: string): void {
    const entry = this.#entries.get(instanceId);
    if (!entry) return;
    this.#remove(entry);
  }

  /** Places what can be placed. @returns what the network was not told yet */
  run(): Decision[] {
    this.#refreshTree();
    this.#line.reopen(this.#freed);
    this.#freed.clear();
    this.#line.run((entry) => this.#place(entry));
    const hasNodes = this.#tree.usable > 0;
    if (hasNodes !== this.#hadNodes) for (const entry of this.#line) this.#mark(entry);
    this.#hadNodes = hasNodes;
    return this.#settle(hasNodes ? NO_CAPACITY : NO_NODES);
  }

  /** The newest figures for those that wait ("has 1024 MiB free"), where they differ from what was told. @param max at most */
  reword(max: number): Decision[] {
    const decisions: Decision[] = [];
    if (max <= 0) return decisions;
    this.#refreshTree();
    const words = this.#createWords();
    for (const entry of this.#line) {
      if (entry.load !== null) continue;
      const reason = words(entry.instance.needs);
      if (entry.placement.nodeId === null && reason.message === entry.placement.reason?.message) continue;
      decisions.push(this.#decide(entry, nowhere(reason)));
      if (decisions.length >= max) break;
    }
    return decisions;
  }

  /** The node that something new of this size would get, and why there is none. */
  simulate(needs: Resources): { load: NodeLoad } | { reason: Reason } {
    this.#refreshTree();
    const load = this.#tree.find(needs);
    return load ? { load } : { reason: explainShortage(this.#tree, this.#loads.values(), needs) };
  }

  #addNode(node: Node, standing: Standing): void {
    const load = createLoad(node, standing, this.#options.cpuOvercommit);
    this.#loads.set(node.nodeId, load);
    this.#isTreeOld = true;
    this.#freed.add(load);
    const orphans = this.#orphans.get(node.nodeId);
    if (orphans) this.#rebook(Array.from(orphans, ({ instanceId }) => instanceId));
  }

  #touch(load: NodeLoad): void {
    if (!this.#isTreeOld) this.#tree.update(load);
    this.#freed.add(load);
  }

  #refreshTree(): void {
    if (!this.#isTreeOld) return;
    this.#tree.rebuild(this.#loads.values());
    this.#isTreeOld = false;
  }

  #rebook(instanceIds: readonly string[]): void {
    for (const instanceId of instanceIds) {
      const entry = this.#entries.get(instanceId)!;
      this.#release(entry);
      this.#book(entry);
    }
  }

  /** Where an instance has a node already it keeps it: its disk is there. */
  #book(entry: Entry): void {
    const { nodeId, nodeAddress, ipv6 } = entry.placement;
    if (nodeId !== null && nodeAddress !== null && !this.#options.manages(nodeAddress)) return;
    const load = nodeId === null ? undefined : this.#loads.get(nodeId);
    if (load) {
      const address = addressOn(load, entry.instanceId) || ipv6;
      if (address !== ipv6 || load.node.address !== nodeAddress)
        entry.placement = { nodeId, nodeAddress: load.node.address, ipv6: address, reason: null };
      this.#hold(entry, load);
    } else if (nodeId !== null) {
      const orphans = this.#orphans.get(nodeId) ?? new Set();
      this.#orphans.set(nodeId, orphans.add(entry));
    } else if (entry.instance.barred) entry.placement = nowhere(entry.instance.barred);
    this.#mark(entry);
    this.#lineUp(entry);
  }

  #hold(entry: Entry, load: NodeLoad): void {
    entry.load = load;
    entry.held = heldOn(entry, load);
    addLoad(load, entry.held, entry.instanceId);
    if (!this.#isTreeOld) this.#tree.update(load);
  }

  #release(entry: Entry): void {
    this.#letGo(entry);
    if (entry.isWaiting) this.#line.remove(entry);
  }

  #letGo(entry: Entry): void {
    const { load, placement } = entry;
    if (load) {
      addLoad(load, entry.held, entry.instanceId, -1);
      this.#touch(load);
      entry.load = null;
    } else if (placement.nodeId !== null) this.#forgetOrphan(entry, placement.nodeId);
  }

  #remove(entry: Entry): void {
    this.#entries.delete(entry);
    this.#release(entry);
    entry.isChanged = false;
  }

  #mark(entry: Entry): void {
    if (entry.isChanged) return;
    entry.isChanged = true;
    this.#changed.push(entry);
  }

  /** Whether an instance waits for a place follows from what it has. */
  #lineUp(entry: Entry): void {
    const isMissing = entry.load === null || entry.load.standing.leaving !== null;
    const wants = isMissing && entry.instance.barred === undefined;
    if (wants === entry.isWaiting) return;
    if (wants) this.#line.add(entry);
    else this.#line.remove(entry);
  }

  #place(entry: Entry): Outcome {
    const { instanceId, mayBeAlike } = entry;
    const { needs } = entry.instance;
    let load = this.#tree.find(needs);
    // What a node holds is in the table, too: one that is alike there has told of it.
    if (mayBeAlike && load?.instances.hasAddressOf(instanceId)) {
      load = this.#tree.find(needs, (one) => one.instances.hasAddressOf(instanceId));
      if (!load) return 'refused';
    }
    if (!load) return 'full';
    const reason = entry.load
      ? entry.load.standing.leaving
      : entry.placement.nodeId === null
        ? null
        : NODE_GONE;
    // The line lets it go by itself.
    this.#letGo(entry);
    const ipv6 = addressOn(load, instanceId);
    entry.placement = { nodeId: load.node.nodeId, nodeAddress: load.node.address, ipv6, reason };
    this.#hold(entry, load);
    this.#mark(entry);
    return 'placed';
  }

  /** The reason for each size, made once. */
  #createWords(): (needs: Resources) => Reason {
    const known = new Map<string, Reason>();
    return (needs) => {
      const key = `${needs.cpu} ${needs.memoryMib} ${needs.diskGib}`;
      const reason = known.get(key) ?? explainShortage(this.#tree, this.#loads.values(), needs);
      known.set(key, reason);
      return reason;
    };
  }

  #decide(entry: Entry, placement: Placement): Decision {
    const { instanceId, said } = entry;
    if (placement.nodeId === null && entry.placement.nodeId !== null)
      this.#forgetOrphan(entry, entry.placement.nodeId);
    entry.placement = placement;
    entry.said = placement;
    return { instanceId, placement, from: said.nodeId, kind: kindOf(said.nodeId, placement.nodeId) };
  }

  #forgetOrphan(entry: Entry, nodeId: string): void {
    const orphans = this.#orphans.get(nodeId);
    orphans?.delete(entry);
    if (orphans?.size === 0) this.#orphans.delete(nodeId);
  }

  /** What of the changes is to be told. Only now: the figures that explain are those that are left when everything is placed. */
  #settle(shortageCode: string): Decision[] {
    const words = this.#createWords();
    const decisions: Decision[] = [];
    for (const entry of this.#changed) {
      if (!entry.isChanged) continue;
      entry.isChanged = false;
      const { said, placement } = entry;
      if (entry.load === null && entry.isWaiting) {
        if (placement.nodeId !== null || placement.reason?.code !== shortageCode)
          decisions.push(this.#decide(entry, nowhere(words(entry.instance.needs))));
      } else if (!isSamePlacement(said, placement)) decisions.push(this.#decide(entry, placement));
    }
    this.#changed = [];
    return decisions;
  }
}
