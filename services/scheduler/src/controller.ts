import { type Logger, pause } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import { listChanges } from './changes.ts';
import type { Health } from './health.ts';
import type { Outbox } from './outbox.ts';
import { type Plan, plan } from './plan.ts';
import { applyInstance, applyNode, type Instance, type Node, type View } from './view.ts';
import type { Watcher } from './watch.ts';

export interface ControllerOptions {
  readonly health: Health;
  readonly outbox: Outbox;
  readonly cpuOvercommit: number;
  readonly manages: (nodeAddress: string) => boolean;
  /** Told of the nodes, and of those out of reach, each time that it plans. */
  readonly onNodes?: (nodes: Iterable<Node>, unreachable: ReadonlyMap<string, string>) => void;
  readonly now: () => number;
  readonly signal: AbortSignal;
  readonly log: Logger;
}

/** What the scheduler thinks at this moment. */
export interface Snapshot {
  readonly view: View;
  readonly plan: Plan;
  /** When the plan was last known to follow from the core node's state, milliseconds since 1970. */
  readonly checkedAtMs: number;
}

/** How long the first plan may wait for the first probes: nodes that died meanwhile should not get what waited. */
const FIRST_PROBES_MAX_MS = 2_500;
/** Waiting instances that one checkpoint tells in new words; the first words of each are told without limit. */
const WORDINGS_MAX = 32;
/** A lost stream is tried again within 5 s; longer silence after a loss means that it is back. */
const DISCONNECT_MEMORY_MS = 8_000;

/** Keeps the plan up to date with the view, and the network up to date with the plan. */
export class Controller implements Watcher {
  readonly #options: ControllerOptions;
  #view: View | undefined;
  #plan: Plan | undefined;
  #checkedAtMs = 0;
  #isDue = false;
  #isProbed = false;
  #coreFailure: string | null = null;
  #disconnectedAtMs = Number.NEGATIVE_INFINITY;

  constructor(options: ControllerOptions) {
    this.#options = options;
  }

  get hasPlan(): boolean {
    return this.#plan !== undefined;
  }

  /** Throws UPSTREAM_UNAVAILABLE until the core node was read once. */
  snapshot(): Snapshot {
    if (!this.#view || !this.#plan) {
      const why = this.#coreFailure === null ? '' : `: ${this.#coreFailure}`;
      throw new AppError('UPSTREAM_UNAVAILABLE', `the scheduler has not read the core node yet${why}`);
    }
    return { view: this.#view, plan: this.#plan, checkedAtMs: this.#checkedAtMs };
  }

  /** Why the core node cannot be read now, or null. */
  get coreFailure(): string | null {
    return this.#coreFailure;
  }

  get nodes(): Iterable<Node> {
    return this.#view?.nodes.values() ?? [];
  }

  onView(view: View): void {
    const { outbox, health } = this.#options;
    const before = this.#view;
    this.#view = view;
    this.#coreFailure = null;
    outbox.keepOnly(view.instances);
    health.keepOnly(view.nodes);
    for (const instance of view.instances.values())
      outbox.settle(instance, before?.instances.get(instance.instanceId));
    if (this.#isProbed) this.planSoon();
    else void this.#probeFirst(view);
  }

  onNode(node: Node): void {
    this.#coreFailure = null;
    if (!this.#view || !applyNode(this.#view, node)) return;
    void this.#options.health.probe(node);
    this.planSoon();
  }

  onInstance(instance: Instance): void {
    this.#coreFailure = null;
    if (!this.#view) return;
    const before = this.#view.instances.get(instance.instanceId);
    applyInstance(this.#view, instance);
    this.#options.outbox.settle(instance, before);
    this.planSoon();
  }

  /** The instance was forgotten: what was decided for it is nobody's business any more. */
  onInstanceRemoved(instanceId: string): void {
    if (!this.#view?.instances.delete(instanceId)) return;
    this.#options.outbox.drop(instanceId);
    this.planSoon();
  }

  onDisconnect(error: unknown): void {
    this.#coreFailure = (error as Error).message;
    this.#disconnectedAtMs = this.#options.now();
  }

  /** Plans once for all events of this turn of the event loop. */
  planSoon(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    setImmediate(() => {
      this.#isDue = false;
      this.#planNow(false);
    });
  }

  /** The core node answers: unless its stream was lost a moment ago, the plan holds as of now. Also the time to tell waiting instances the newest figures. */
  checkpoint(): void {
    const nowMs = this.#options.now();
    if (nowMs - this.#disconnectedAtMs < DISCONNECT_MEMORY_MS) return;
    this.#coreFailure = null;
    this.#planNow(true);
    if (this.#plan) this.#checkedAtMs = nowMs;
  }

  async #probeFirst(view: View): Promise<void> {
    const { health, signal } = this.#options;
    await Promise.race([health.probeAll(view.nodes.values()), pause(FIRST_PROBES_MAX_MS, signal)]);
    this.#isProbed = true;
    this.planSoon();
  }

  /** What the network was told: the view, and over it what is still on its way. */
  #listSaid(view: View): ReadonlyMap<string, Instance> {
    const { outbox } = this.#options;
    if (outbox.size === 0) return view.instances;
    const said = new Map<string, Instance>();
    for (const [instanceId, instance] of view.instances) {
      const placement = outbox.get(instanceId);
      said.set(instanceId, placement ? { ...instance, ...placement } : instance);
    }
    return said;
  }

  #planNow(withWordings: boolean): void {
    const { health, outbox, cpuOvercommit, manages, signal, now, log } = this.#options;
    const view = this.#view;
    if (!view || !this.#isProbed || signal.aborted) return;
    const said = this.#listSaid(view);
    const input = { nodes: view.nodes, instances: said, unreachable: health.unreachable };
    this.#plan = plan({ ...input, cpuOvercommit, manages });
    this.#options.onNodes?.(view.nodes.values(), health.unreachable);
    if (this.#checkedAtMs === 0) this.#checkedAtMs = now();
    const { decisions, wordings } = listChanges(said, this.#plan.placements);
    for (const { instanceId, placement } of decisions) {
      const { nodeId, ipv6, reason } = placement;
      log.info({ instance_id: instanceId, node_id: nodeId, ipv6, reason }, 'decided');
      outbox.offer(instanceId, placement);
    }
    if (withWordings)
      for (const { instanceId, placement } of wordings.slice(0, WORDINGS_MAX))
        outbox.offer(instanceId, placement);
  }
}
