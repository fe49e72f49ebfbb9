import { backoffMs, type Logger, pause, Slots } from '@skerry/kit';
import { heldNext } from './planning/departures.ts';
import type { Fault, Findings } from './probe.ts';
import type { Node } from './view.ts';

export interface HealthOptions {
  /** Has a node prove its key at its URL, and its prefix where that is asked for. */
  readonly probe: (node: Node, asksPrefix: boolean, signal: AbortSignal) => Promise<Findings>;
  /** Whether a node is asked at all: a stranger's that gets nothing anyway is not. */
  readonly isAsked: (node: Node) => boolean;
  /** Whether the operator lists it. */
  readonly isListed: (node: Node) => boolean;
  /** Whether the prefix of a node is one that can be proved. */
  readonly asksPrefix: (node: Node) => boolean;
  /** Told when something that was known of a node has changed. */
  readonly onChange: (nodeId: string) => void;
  /** Milliseconds since 1970, for people. */
  readonly now: () => number;
  /** Milliseconds of a clock that nobody sets: what is decided hangs on it. */
  readonly uptime?: () => number;
  /** Which networks nodes had that changed theirs, as an earlier process knew it. */
  readonly networksBefore?: Iterable<readonly [string, NetworkChange]>;
  /** A node has changed its network. */
  readonly onNetworkChange?: () => void;
  readonly signal: AbortSignal;
  readonly log: Logger;
  /** Between a probe that failed and the one that decides. */
  readonly againMs?: number;
}

const PROBES_IN_FLIGHT_MAX = 64;
/** Of these, so many are left to nodes that the operator lists: strangers that take as long as they may keep none of them waiting. */
const LISTED_PLACES = 16;
/** One answer that is late or lost, as on a machine that is busy for a moment, says nothing of a node. */
const AGAIN_MS = 500;
/** A prefix that was proved is asked for again so often. */
const PREFIX_FRESH_MS = 60_000;
/** A stranger that never proved anything is asked ever less often: its URL may be that of somebody who has nothing to do with it. */
const UNPROVED_BASE_MS = 10_000;
const UNPROVED_MAX_MS = 600_000;
/** Where everything is started at once, nodes come up after the scheduler: so long it waits before it warns of one that it has not reached yet. */
const FIRST_MS = 60_000;

/** A node that does not prove its key: since when (milliseconds since 1970), and what came of the last probe. */
export interface Outage {
  readonly sinceMs: number;
  /** As the time passed, whatever clock was set meanwhile. */
  readonly lastedMs: number;
  readonly failure: string;
  /** Nothing of it answers. */
  readonly isSilent: boolean;
}

/** What a node has proved. */
export interface Proof {
  readonly isKeyProved: boolean;
  /** The network that it proved last; null where it proved none. */
  readonly prefix: string | null;
  /** Why the network that it announces does not count; null where it does. */
  readonly prefixFault: string | null;
}

/** The last change of a node's network. */
export interface NetworkChange {
  /** The one that it has since. */
  readonly prefix: string;
  /** Of a clock that nobody sets, milliseconds. */
  readonly sinceMs: number;
  /** How long it counts at least before another one does. */
  readonly heldMs: number;
}

/** At which an outage is told: a stranger's never is news, a node's of the first minute is none yet. */
type Level = 'debug' | 'info' | 'warn';

interface Known {
  /** What the proofs were about. */
  place: string;
  isKeyProved: boolean;
  prefix: string | null;
  prefixProvedMs: number;
  prefixSinceMs: number;
  /** How long it counts at least before another one does. */
  prefixHeldMs: number;
  prefixFault: string | null;
  /** With when it began, by the time that passes. */
  outage: (Omit<Outage, 'lastedMs'> & { readonly beganMs: number; readonly level: Level }) | undefined;
  failures: number;
  /** By the time that passes, as what is said of the prefix. */
  retryMs: number;
}

/** A probe that is under way. */
interface Running {
  readonly node: Node;
  readonly done: Promise<void>;
  /** Where the node has said since that it is, where that is somewhere else. */
  next: Node | undefined;
}

const NOT_YET = 'the node has not been asked for it yet';
const UNKNOWN: Proof = { isKeyProved: false, prefix: null, prefixFault: NOT_YET };

const TOO_SOON = 'the node changed its network a short while ago; the new one counts after a while';

const placeOf = ({ url, ipv6Prefix }: Node) => `${url} ${ipv6Prefix}`;

const createKnown = (place: string): Known => ({
  place,
  isKeyProved: false,
  prefix: null,
  prefixProvedMs: Number.NEGATIVE_INFINITY,
  prefixSinceMs: Number.NEGATIVE_INFINITY,
  prefixHeldMs: 0,
  prefixFault: NOT_YET,
  outage: undefined,
  failures: 0,
  retryMs: Number.NEGATIVE_INFINITY,
});

const isSameKnown = (a: Known, b: Known) =>
  a.isKeyProved === b.isKeyProved &&
  a.prefix === b.prefix &&
  a.prefixFault === b.prefixFault &&
  (a.outage === undefined) === (b.outage === undefined) &&
  a.outage?.isSilent === b.outage?.isSilent;

/** What every node has proved, and which are out of reach. Nothing is believed of one that was never asked. */
export class Health {
  readonly #options: HealthOptions;
  readonly #uptime: () => number;
  readonly #startedMs: number;
  readonly #slots = new Slots(PROBES_IN_FLIGHT_MAX);
  readonly #strangers = new Slots(PROBES_IN_FLIGHT_MAX - LISTED_PLACES);
  readonly #known = new Map<string, Known>();
  /** Who proved a prefix last. An address answers with one key at a time, so it has the prefix. */
  readonly #holders = new Map<string, string>();
  readonly #running = new Map<string, Running>();

  constructor(options: HealthOptions) {
    this.#options = options;
    this.#uptime = options.uptime ?? (() => performance.now());
    this.#startedMs = this.#uptime();
    for (const [nodeId, { prefix, sinceMs, heldMs }] of options.networksBefore ?? []) {
      this.#known.set(nodeId, { ...createKnown(''), prefix, prefixSinceMs: sinceMs, prefixHeldMs: heldMs });
      this.#holders.set(prefix, nodeId);
    }
  }

  /** What the next process has to know of those that changed their network. */
  *listNetworkChanges(): Generator<readonly [string, NetworkChange]> {
    for (const [nodeId, { prefix, prefixSinceMs: sinceMs, prefixHeldMs: heldMs }] of this.#known)
      if (prefix !== null && heldMs > 0) yield [nodeId, { prefix, sinceMs, heldMs }];
  }

  outageOf(nodeId: string): Outage | undefined {
    const outage = this.#known.get(nodeId)?.outage;
    if (!outage) return undefined;
    const { beganMs, level: _, ...told } = outage;
    return { ...told, lastedMs: this.#uptime() - beganMs };
  }

  /** What counts of a node's announcement. What it says anew it has to prove anew. */
  proofOf(node: Node): Proof {
    const known = this.#known.get(node.nodeId);
    if (!known) return UNKNOWN;
    const { isKeyProved, prefix, prefixFault } = known;
    if (known.place === placeOf(node)) return { isKeyProved, prefix, prefixFault };
    return { isKeyProved: false, prefix, prefixFault: NOT_YET };
  }

  /** Probes a node, or waits for the probe that is under way. Never rejects. */
  probe(node: Node): Promise<void> {
    const known = this.#known.get(node.nodeId);
    const isResting = known?.place === placeOf(node) && known.retryMs > this.#uptime();
    if (!this.#options.isAsked(node) || isResting) return Promise.resolve();
    const running = this.#running.get(node.nodeId);
    if (running) {
      if (placeOf(node) !== placeOf(running.node)) running.next = node;
      return running.done;
    }
    const ask = () => this.#slots.run(() => this.#probe(node));
    const asked = this.#options.isListed(node) ? ask() : this.#strangers.run(ask);
    const done = asked.finally(() => this.#onProbed(node));
    this.#running.set(node.nodeId, { node, done, next: undefined });
    return done;
  }

  /** What was asked says nothing of where the node says that it is since. Nobody waits for that: it could move without end. */
  #onProbed({ nodeId }: Node): void {
    const next = this.#running.get(nodeId)?.next;
    this.#running.delete(nodeId);
    if (next) void this.probe(next);
  }

  async probeAll(nodes: Iterable<Node>): Promise<void> {
    await Promise.all(Array.from(nodes, (node) => this.probe(node)));
  }

  /** Drops what is known of other nodes. */
  keepOnly(isKept: (nodeId: string) => boolean): void {
    for (const nodeId of this.#known.keys()) if (!isKept(nodeId)) this.#known.delete(nodeId);
    for (const [prefix, nodeId] of this.#holders) if (!isKept(nodeId)) this.#holders.delete(prefix);
  }

  /** Whether a node is known to be there, by what it proved or by the operator's word. */
  #isKnownToBe(node: Node): boolean {
    return this.#known.get(node.nodeId)?.isKeyProved === true || this.#options.isListed(node);
  }

  async #probe(node: Node): Promise<void> {
    const { probe, asksPrefix, signal, log, againMs = AGAIN_MS } = this.#options;
    if (signal.aborted) return;
    const known = this.#known.get(node.nodeId);
    const isFresh =
      known?.place === placeOf(node) &&
      known.prefixFault === null &&
      this.#uptime() - known.prefixProvedMs < PREFIX_FRESH_MS;
    const ask = () => probe(node, asksPrefix(node) && !isFresh, signal);
    try {
      let findings = await ask();
      const isNews = findings.key !== null && known?.outage === undefined && this.#isKnownToBe(node);
      if (isNews && (await pause(againMs, signal))) findings = await ask();
      this.#learn(node, findings);
    } catch (error) {
      if (!signal.aborted) log.error({ err: error, node_id: node.nodeId }, 'a probe failed');
    }
  }

  #learn(node: Node, { key, prefix }: Findings): void {
    const { onChange } = this.#options;
    const { nodeId } = node;
    const before = this.#known.get(nodeId);
    const place = placeOf(node);
    const next: Known = before ? { ...before, place } : createKnown(place);
    if (before && before.place !== place) next.prefixFault = NOT_YET;
    this.#learnKey(next, key, node);
    const isTaken = prefix === null && this.#takeOver(next, node.ipv6Prefix!);
    if (prefix) next.prefixFault = prefix.message;
    this.#known.set(nodeId, next);
    if (isTaken) this.#take(node.ipv6Prefix!, nodeId);
    if (next.prefixHeldMs > 0 && before?.prefixSinceMs !== next.prefixSinceMs)
      this.#options.onNetworkChange?.();
    if (!before || !isSameKnown(before, next) || before.place !== place) onChange(nodeId);
  }

  /** A node has proved a prefix. @returns whether it counts */
  #takeOver(next: Known, prefix: string): boolean {
    const uptimeMs = this.#uptime();
    if (next.prefix !== prefix) {
      const keptMs = uptimeMs - next.prefixSinceMs;
      if (keptMs < next.prefixHeldMs) {
        next.prefixFault = TOO_SOON;
        return false;
      }
      next.prefixHeldMs = heldNext(next.prefixHeldMs, keptMs);
      next.prefix = prefix;
      next.prefixSinceMs = uptimeMs;
    }
    next.prefixFault = null;
    next.prefixProvedMs = uptimeMs;
    return true;
  }

  #levelOf(node: Node, { isKeyProved }: Known): Level {
    // A stranger that never proved anything is no news: whoever announces writes no lines of this log.
    if (!this.#isKnownToBe(node)) return 'debug';
    return isKeyProved || this.#uptime() - this.#startedMs >= FIRST_MS ? 'warn' : 'info';
  }

  #learnKey(next: Known, key: Fault | null, node: Node): void {
    const { now, log } = this.#options;
    const { nodeId, url } = node;
    const before = next.outage;
    if (key === null) {
      if (before) log.info({ node_id: nodeId, url }, 'the node answers again');
      Object.assign(next, {
        isKeyProved: true,
        outage: undefined,
        failures: 0,
        retryMs: Number.NEGATIVE_INFINITY,
      });
      return;
    }
    const level = this.#levelOf(node, next);
    if (!before || (level === 'warn' && before.level !== 'warn'))
      log[level](
        { node_id: nodeId, url, failure: key.message },
        'the node is unreachable and gets nothing new',
      );
    const uptimeMs = this.#uptime();
    const { sinceMs, beganMs } = before ?? { sinceMs: now(), beganMs: uptimeMs };
    next.outage = { sinceMs, beganMs, level, failure: key.message, isSilent: key.isSilent };
    next.failures++;
    if (!this.#isKnownToBe(node))
      next.retryMs = uptimeMs + backoffMs(next.failures, UNPROVED_BASE_MS, UNPROVED_MAX_MS);
  }

  /** The one that had the prefix before has it no more. */
  #take(prefix: string, nodeId: string): void {
    const holder = this.#holders.get(prefix);
    this.#holders.set(prefix, nodeId);
    if (holder === undefined || holder === nodeId) return;
    const known = this.#known.get(holder);
    if (known?.prefix !== prefix) return;
    this.#options.log.warn({ prefix, node_id: nodeId, before: holder }, 'another node proved a prefix');
    known.prefix = null;
    known.prefixFault = 'another node has since proved that it has this network';
    this.#options.onChange(holder);
  }
}
