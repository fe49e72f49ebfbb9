import { type Logger, Slots } from '@skerry/kit';
import type { Node } from './view.ts';

export interface HealthOptions {
  /** Why a node is out of reach, or undefined where it is not. */
  readonly probe: (node: Node, signal: AbortSignal) => Promise<string | undefined>;
  /** Told when a node went out of reach or came back. */
  readonly onChange: (nodeId: string) => void;
  readonly now: () => number;
  readonly signal: AbortSignal;
  readonly log: Logger;
}

const PROBES_IN_FLIGHT_MAX = 64;

/** A node that does not answer: since when (milliseconds since 1970), and what came of the last probe. */
export interface Outage {
  readonly sinceMs: number;
  readonly failure: string;
}

/** Which nodes are out of reach. A node that was never probed is not among them, so that a new one is of use at once. */
export class Health {
  readonly #options: HealthOptions;
  readonly #slots = new Slots(PROBES_IN_FLIGHT_MAX);
  readonly #outages = new Map<string, Outage>();
  readonly #running = new Map<string, Promise<void>>();

  constructor(options: HealthOptions) {
    this.#options = options;
  }

  /** By node id. */
  get outages(): ReadonlyMap<string, Outage> {
    return this.#outages;
  }

  /** Probes a node, or waits for the probe that is under way. Never rejects. */
  probe(node: Node): Promise<void> {
    const running = this.#running.get(node.nodeId);
    if (running) return running;
    const started = this.#slots.run(() => this.#probe(node)).finally(() => this.#running.delete(node.nodeId));
    this.#running.set(node.nodeId, started);
    return started;
  }

  async probeAll(nodes: Iterable<Node>): Promise<void> {
    await Promise.all(Array.from(nodes, (node) => this.probe(node)));
  }

  /** Drops what is known of nodes that are no longer in the network. */
  keepOnly(nodes: ReadonlyMap<string, Node>): void {
    for (const nodeId of this.#outages.keys()) if (!nodes.has(nodeId)) this.#outages.delete(nodeId);
  }

  async #probe(node: Node): Promise<void> {
    const { probe, onChange, now, signal, log } = this.#options;
    if (signal.aborted) return;
    let failure: string | undefined;
    try {
      failure = await probe(node, signal);
    } catch (error) {
      if (!signal.aborted) log.error({ err: error, node_id: node.nodeId }, 'a probe failed in itself');
      return;
    }
    const { nodeId, url } = node;
    const before = this.#outages.get(nodeId);
    if (failure === undefined) this.#outages.delete(nodeId);
    else this.#outages.set(nodeId, { sinceMs: before?.sinceMs ?? now(), failure });
    if ((before === undefined) === (failure === undefined)) return;
    if (failure === undefined) log.info({ node_id: nodeId, url }, 'the node answers again');
    else log.warn({ node_id: nodeId, url, failure }, 'the node is out of reach and gets nothing new');
    onChange(nodeId);
  }
}
