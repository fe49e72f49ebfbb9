import { pause } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import type { ControllerOptions } from './controller-options.ts';
import { DecisionLog } from './decision-log.ts';
import type { Outage } from './health.ts';
import { decideCutOff, type Sighting } from './planning/cut-off.ts';
import type { Departures } from './planning/departures.ts';
import { type Decision, Planner } from './planning/planner.ts';
import { decideStanding, isDraining, isSameStanding, NODE_DEAD } from './planning/standing.ts';
import {
  countedRoom,
  decideTrust,
  type Earned,
  mayRunPrograms,
  scoreOf,
  type TrustFacts,
  wasMeasured,
} from './planning/trust.ts';
import { Wordings } from './planning/wordings.ts';
import { outdatedMsOf, type Scores } from './scores.ts';
import {
  applyInstance,
  applyNode,
  type Instance,
  NODES_MAX,
  type Node,
  removeInstance,
  type View,
} from './view.ts';
import type { Watcher } from './watch.ts';

/** What the scheduler thinks at this moment. */
export interface Snapshot {
  readonly view: View;
  readonly planner: Planner;
  readonly decisions: DecisionLog;
  /** Since when a node gets nothing new or is left, Unix milliseconds; null where neither is so. */
  readonly wrongSince: (nodeId: string) => number | null;
  /** When the plan was last known to follow from the core node's state, milliseconds since 1970. */
  readonly checkedAtMs: number;
}

/** How long the first plan may wait for the first probes: nodes that died meanwhile should not get what waited. */
const FIRST_PROBES_MAX_MS = 2_500;
/** Decisions of one plan that are logged one by one. */
const LOGGED_MAX = 100;
/** A node that is silent for so long and holds nothing is not expected back. */
const GIVEN_UP_MS = 86_400_000;
/** A lost stream is tried again within 5 s; longer silence after a loss means that it is back. */
const DISCONNECT_MEMORY_MS = 8_000;

/** Keeps the plan up to date with the view, and the network up to date with the plan. */
export class Controller implements Watcher {
  readonly #options: ControllerOptions;
  readonly #uptime: () => number;
  readonly #planner: Planner;
  readonly #decisions = new DecisionLog();
  readonly #departures: Departures;
  readonly #wordings = new Wordings();
  #view: View | undefined;
  #scores: Scores = new Map();
  /** Nodes of which something else is known than when they were assessed. */
  readonly #changed = new Set<string>();
  #checkedAtMs = 0;
  #isDue = false;
  #isProbed = false;
  #isCutOff = false;
  /** Whether any node has proved its key in this process. */
  #hasProved = false;
  #hasRun = false;
  #coreFailure: string | null = null;
  #disconnectedAtMs = Number.NEGATIVE_INFINITY;
  /** Since when this scheduler speaks, or spoke last, by the time that passes. */
  #turnMs = Number.NEGATIVE_INFINITY;

  constructor(options: ControllerOptions) {
    this.#options = options;
    this.#uptime = options.uptime ?? (() => performance.now());
    this.#planner = new Planner(options);
    this.#departures = options.departures;
  }

  get hasPlan(): boolean {
    return this.#hasRun;
  }

  /** Throws UPSTREAM_UNAVAILABLE until the core node was read once. */
  snapshot(): Snapshot {
    if (!this.#view || !this.#hasRun) {
      const why = this.#coreFailure === null ? '' : `: ${this.#coreFailure}`;
      throw new AppError('UPSTREAM_UNAVAILABLE', `the scheduler has not read the core node yet${why}`);
    }
    return {
      view: this.#view,
      planner: this.#planner,
      decisions: this.#decisions,
      wrongSince: (nodeId) => this.#options.wrongSince.of(nodeId),
      checkedAtMs: this.#checkedAtMs,
    };
  }

  /** Why the core node cannot be read now, or null. */
  get coreFailure(): string | null {
    return this.#coreFailure;
  }

  get nodes(): Iterable<Node> {
    return this.#view?.nodes.values() ?? [];
  }

  /** True while so many nodes are out of reach that it is more likely that this scheduler is. */
  get isCutOff(): boolean {
    return this.#isCutOff;
  }

  /** Of scores that are too old to count: the time of the newest measurement behind them, Unix milliseconds; null where they count. */
  get scoresOutdatedMs(): number | null {
    return outdatedMsOf(this.#scores);
  }

  #earnedBy(nodeId: string): Earned | null {
    return this.#scores.get(nodeId) ?? null;
  }

  #factsOf({ nodeId, address }: Node): TrustFacts {
    const { trust: level, isListed } = this.#options;
    return { level, isListed: isListed(address), earned: this.#earnedBy(nodeId) };
  }

  /** Whether a node has its place in the view whoever announces what: it is listed, or was measured. */
  isKept({ nodeId, address }: Node): boolean {
    return this.#options.isListed(address) || wasMeasured(this.#earnedBy(nodeId));
  }

  /** Measured nodes that are not in the view, where it is so full that their announcements may have been turned away. */
  listMissing(): string[] {
    const nodes = this.#view?.nodes;
    if (!nodes || nodes.size < NODES_MAX) return [];
    return [...this.#scores].flatMap(([id, earned]) => (wasMeasured(earned) && !nodes.has(id) ? [id] : []));
  }

  /** Whether a node is asked for proofs: only where it matters, since a stranger may have announced any URL. */
  isAsked(node: Node): boolean {
    return mayRunPrograms(this.#factsOf(node)) || this.#view?.holders.has(node.nodeId) === true;
  }

  /** What was given up long ago and holds nothing says nothing of now, nor does what never proved that it is there. */
  #lookAround(): void {
    const { health, isListed } = this.#options;
    const seen: Sighting[] = [];
    for (const node of this.nodes) {
      const isHolder = this.#view?.holders.has(node.nodeId) === true;
      const { isKeyProved, prefix, prefixFault } = health.proofOf(node);
      if (!this.isAsked(node) || !(isHolder || isKeyProved)) continue;
      const outage = health.outageOf(node.nodeId);
      if (outage && !isHolder && outage.lastedMs >= GIVEN_UP_MS) continue;
      const proved = prefixFault === null ? prefix : null;
      seen.push({ isInReach: !outage, isListed: isListed(node.address), prefix: proved });
    }
    this.#isCutOff = decideCutOff(seen);
  }

  /** The nodes that programs may be sent to. */
  *#listProved(): Generator<Node> {
    const { health } = this.#options;
    for (const node of this.nodes) {
      const isProved = health.proofOf(node).isKeyProved && !health.outageOf(node.nodeId);
      if (isProved && mayRunPrograms(this.#factsOf(node))) yield node;
    }
  }

  /** What a node proved is known for as long as it holds something: by leaving and coming back it changes its network no more often. */
  #forgetNodes({ nodes, holders }: View): void {
    this.#options.health.keepOnly((nodeId) => nodes.has(nodeId) || holders.has(nodeId));
  }

  onView(view: View): void {
    const { outbox } = this.#options;
    const before = this.#view;
    this.#view = view;
    this.#coreFailure = null;
    outbox.keepOnly(view.instances);
    this.#forgetNodes(view);
    this.#options.wrongSince.keepOnly((nodeId) => view.nodes.has(nodeId));
    for (const nodeId of [...this.#planner.loads.keys()])
      if (!view.nodes.has(nodeId)) this.#removeNode(nodeId);
    this.#lookAround();
    for (const node of view.nodes.values()) this.#assess(node, true);
    for (const instanceId of [...this.#planner.instanceIds])
      if (!view.instances.has(instanceId)) this.#planner.removeInstance(instanceId);
    for (const told of view.instances.values()) {
      const known = before?.instances.get(told.instanceId);
      this.#take(applyInstance(view, told, known), known);
    }
    if (this.#isProbed) this.planSoon();
    else void this.#probeFirst(view);
  }

  onNode(node: Node): void {
    this.#coreFailure = null;
    if (!this.#view || !applyNode(this.#view, node, (one) => this.isKept(one))) return;
    void this.#options.health.probe(node);
    this.#assess(node, true);
    this.planSoon();
  }

  /** The node took its word back, or said something older again. */
  onNodeGone(nodeId: string, instead: Node | undefined): void {
    if (!this.#view?.nodes.delete(nodeId)) return;
    if (instead) {
      this.#view.nodes.set(nodeId, instead);
      this.#assess(instead, true);
    } else {
      this.#forgetNodes(this.#view);
      this.#options.wrongSince.note(nodeId, false);
      this.#removeNode(nodeId);
    }
    this.planSoon();
  }

  #removeNode(nodeId: string): void {
    this.#departures.left(this.#planner.loads.get(nodeId), this.#uptime());
    this.#planner.removeNode(nodeId);
  }

  onInstance(told: Instance): void {
    this.#coreFailure = null;
    if (!this.#view) return;
    const before = this.#view.instances.get(told.instanceId);
    this.#take(applyInstance(this.#view, told, before), before);
    this.planSoon();
  }

  /** The instance was forgotten: what was decided for it is nobody's business any more. */
  onInstanceRemoved(instanceId: string): void {
    if (!this.#view || !removeInstance(this.#view, instanceId)) return;
    this.#options.outbox.drop(instanceId);
    this.#planner.removeInstance(instanceId);
    this.planSoon();
  }

  onDisconnect(error: unknown): void {
    this.#coreFailure = (error as Error).message;
    this.#disconnectedAtMs = this.#uptime();
  }

  /** A node proved something, went out of reach or came back; or it is known now that it left often. */
  onHealth(nodeId: string): void {
    this.#changed.add(nodeId);
    this.planSoon();
  }

  setScores(scores: Scores): void {
    this.#scores = scores;
    void this.#options.health.probeAll(this.#listUnproved());
    for (const node of this.nodes) this.#assess(node, false);
    this.planSoon();
  }

  /** This scheduler speaks from now on. */
  onTurn(): void {
    this.#turnMs = this.#uptime();
    for (const node of this.nodes) this.#assess(node, false);
    this.planSoon();
  }

  /** How long a node was out of reach before this scheduler spoke says nothing: the one that did may have reached it. */
  #outageOf(nodeId: string): Outage | undefined {
    const outage = this.#options.health.outageOf(nodeId);
    return outage && { ...outage, lastedMs: Math.min(outage.lastedMs, this.#uptime() - this.#turnMs) };
  }

  /** Another scheduler speaks now, or the core node lacks something: what this one was about to say is not said, and counts as undecided. */
  onDeposed(): void {
    for (const instanceId of this.#options.outbox.clear()) {
      const instance = this.#view?.instances.get(instanceId);
      if (instance) this.#planner.setInstance(instance);
    }
  }

  /** Plans once for all events of this turn of the event loop. */
  planSoon(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    setImmediate(() => {
      this.#isDue = false;
      this.#assessChanged();
      this.#planNow();
    });
  }

  /**
   * The core node answers: unless its stream was lost a moment ago, the plan holds as of now. Also the time to look for
   * nodes whose grace is over, and to tell waiting instances the newest figures.
   */
  checkpoint(): void {
    if (this.#uptime() - this.#disconnectedAtMs < DISCONNECT_MEMORY_MS) return;
    this.#coreFailure = null;
    this.#lookAround();
    for (const node of this.nodes) this.#assess(node, false);
    this.#planNow();
    if (this.#hasRun && this.#options.leads()) this.#reword();
    if (this.#hasRun) this.#checkedAtMs = this.#options.now();
  }

  #reword(): void {
    const decisions = this.#planner.reword(this.#wordings.left(this.#uptime()));
    this.#wordings.use(decisions.length);
    this.#tell(decisions);
  }

  async #probeFirst(view: View): Promise<void> {
    const { health, signal } = this.#options;
    await Promise.race([health.probeAll(view.nodes.values()), pause(FIRST_PROBES_MAX_MS, signal)]);
    this.#isProbed = true;
    this.planSoon();
  }

  /** What the network tells of an instance, and over it what is still on its way. */
  #take(instance: Instance, before: Instance | undefined): void {
    const { outbox } = this.#options;
    outbox.settle(instance, before);
    // As the network tells it: so a scheduler learns it that does not speak now.
    const left = before?.nodeId ?? null;
    if (left !== null && left !== instance.nodeId && instance.reason?.code === NODE_DEAD)
      this.#departures.fellSilent(left, this.#uptime());
    const placement = outbox.get(instance.instanceId);
    this.#planner.setInstance(placement ? { ...instance, ...placement, kept: undefined } : instance);
  }

  /** Many at once when a scheduler starts. */
  #assessChanged(): void {
    if (this.#changed.size === 0) return;
    this.#lookAround();
    for (const nodeId of this.#changed) {
      const node = this.#view?.nodes.get(nodeId);
      if (node) this.#assess(node, false);
    }
    this.#changed.clear();
  }

  #listUnproved(): Node[] {
    return [...this.nodes].filter((node) => !this.#options.health.proofOf(node).isKeyProved);
  }

  #assess(node: Node, isNew: boolean): void {
    const { health, rules, isDrained, isListed, wrongSince, now } = this.#options;
    const load = this.#planner.loads.get(node.nodeId);
    if (isDraining(node)) this.#departures.left(load, this.#uptime());
    const [trust, proof] = [decideTrust(this.#factsOf(node)), health.proofOf(node)];
    const outage = this.#outageOf(node.nodeId);
    const isThere = !isDraining(node) && !outage && proof.isKeyProved;
    const facts = {
      outage,
      proof,
      trust,
      isListed: isListed(node.address),
      isDrained: isDrained(node),
      isHeldBack: isThere && this.#departures.isHeldBack(node.nodeId, this.#uptime()),
      score: scoreOf(this.#earnedBy(node.nodeId)),
    };
    const standing = decideStanding(node, facts, { ...rules, mayDeclareDead: !this.#isCutOff });
    const isWrong = standing.unusable !== null || standing.leaving !== null;
    // What a node announced of itself is so since it said so.
    const announcedMs = standing.unusable !== null && standing.unusable === node.reason && node.announcedAtMs;
    wrongSince.note(node.nodeId, isWrong, facts.outage?.sinceMs ?? (announcedMs || now()));
    // What counts is what it proved and earned: addresses come from no other network.
    const counted = { ...node, ipv6Prefix: proof.prefix, capacity: countedRoom(node.capacity, trust) };
    if (isNew || !load || load.node.ipv6Prefix !== proof.prefix || !isSameStanding(load.standing, standing))
      this.#planner.setNode(counted, standing);
  }

  #planNow(): void {
    const { leads, onNodes, signal, now } = this.#options;
    if (!this.#view || !this.#isProbed || signal.aborted) return;
    this.#hasRun = true;
    if (this.#checkedAtMs === 0) this.#checkedAtMs = now();
    const proved = [...this.#listProved()];
    this.#hasProved ||= proved.length > 0;
    if (!leads()) return;
    if (proved.length > 0 || (this.#hasProved && !this.#isCutOff)) onNodes?.(proved);
    this.#tell(this.#planner.run());
  }

  #tell(decisions: readonly Decision[]): void {
    const { outbox, log, now } = this.#options;
    if (decisions.length > LOGGED_MAX) log.info({ decisions: decisions.length }, 'made many decisions');
    const level = decisions.length > LOGGED_MAX ? 'debug' : 'info';
    for (const decision of decisions) {
      const { instanceId, placement, kind, from } = decision;
      const { nodeId, ipv6, reason } = placement;
      log[level]({ instance_id: instanceId, kind, from, node_id: nodeId, ipv6, reason }, 'decided');
      this.#decisions.add({ ...decision, decidedAtMs: now() });
      outbox.offer(instanceId, placement);
    }
  }
}
