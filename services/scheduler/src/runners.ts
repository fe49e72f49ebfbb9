import type { CoreClient } from '@skerry/client';
import { Failures, type Logger, pause } from '@skerry/kit';
import { NETWORK_CHANNEL, NETWORK_POST, type Runner, type RunnersContent } from '@skerry/protocol';
import type { Dating } from './dating.ts';
import type { Node } from './view.ts';

/** How a node announces a runtime. */
const FEATURE = 'program:';
/** What one list may hold; nodes beyond it have enough company. */
const RUNNERS_MAX = 256;
const RETRY_BASE_MS = 500;
const RETRY_MAX_MS = 30_000;
/** Nodes that come and go within this time are one change. */
const GATHER_MS = 200;
const GATHER_MAX_MS = 30_000;

/**
 * How long changes are gathered before a list is published. Each list is stored with all of its nodes, for good: one node that
 * comes and goes has it told twice as late each time, until it stays as it is for a while. Pure.
 * @param beforeMs how long they were gathered for the list before
 * @param sinceMs how long ago that was published
 */
export function decideGatherMs(beforeMs: number, sinceMs: number): number {
  if (sinceMs >= GATHER_MAX_MS || beforeMs === 0) return GATHER_MS;
  return Math.min(2 * beforeMs, GATHER_MAX_MS);
}

/**
 * The nodes that programs may be sent to. Pure.
 * @param nodes those that proved their key and are trusted
 */
export function listRunners(nodes: Iterable<Node>): Runner[] {
  const runners: Runner[] = [];
  for (const { nodeId, address, url, features } of nodes) {
    const runtimes = features
      .filter((one) => one.startsWith(FEATURE))
      .map((one) => one.slice(FEATURE.length));
    if (runtimes.length === 0) continue;
    runners.push({ node_id: nodeId, node_address: address, url, runtimes: runtimes.toSorted() });
  }
  return runners.toSorted((a, b) => (a.node_id < b.node_id ? -1 : 1)).slice(0, RUNNERS_MAX);
}

export interface RunnersPublisherOptions {
  readonly core: Pick<CoreClient, 'postMessage'>;
  readonly dating: Dating;
  readonly signal: AbortSignal;
  readonly log: Logger;
}

/** Publishes which nodes run programs, each time that changes. */
export class RunnersPublisher {
  readonly #options: RunnersPublisherOptions;
  #wanted: readonly Runner[] = [];
  /** What a core node has taken. An empty list needs no publishing at the start: nobody knows of any. Undefined: nobody knows. */
  #published: string | undefined = '[]';
  /** For the last list; 0 before the first. */
  #gatheredMs = 0;
  #publishedMs = 0;
  #isPublishing = false;
  /** How often this scheduler came to speak. */
  #turn = 0;

  constructor(options: RunnersPublisherOptions) {
    this.#options = options;
  }

  /** This scheduler speaks again: others may have published another list meanwhile. */
  takeOver(): void {
    this.#turn++;
    this.#published = undefined;
  }

  offer(runners: readonly Runner[]): void {
    this.#wanted = runners;
    if (!this.#isPublishing && JSON.stringify(runners) !== this.#published) void this.#publish();
  }

  #gather(): number {
    this.#gatheredMs = decideGatherMs(this.#gatheredMs, performance.now() - this.#publishedMs);
    return this.#gatheredMs;
  }

  async #publish(): Promise<void> {
    const { core, dating, signal, log } = this.#options;
    this.#isPublishing = true;
    const failures = new Failures({
      log,
      what: 'the list of nodes that run programs could not be published; retrying',
      baseMs: RETRY_BASE_MS,
      maxMs: RETRY_MAX_MS,
    });
    let retryMs: number | undefined;
    while (JSON.stringify(this.#wanted) !== this.#published) {
      if (!(await pause(retryMs ?? this.#gather(), signal))) break;
      const text = JSON.stringify(this.#wanted);
      const runners = [...this.#wanted];
      const turn = this.#turn;
      try {
        await dating.date(async (decidedAtMs) => {
          const content: RunnersContent = { runners, decided_at_ms: decidedAtMs };
          const post = { type: NETWORK_POST.runners, content };
          await core.postMessage({ type: 'POST', channel: NETWORK_CHANNEL.scheduling, content: post });
        });
        if (turn === this.#turn) this.#published = text;
        this.#publishedMs = performance.now();
        failures.clear();
        retryMs = undefined;
        log.info({ runners: runners.map(({ node_id }) => node_id) }, 'published which nodes run programs');
      } catch (error) {
        if (signal.aborted) break;
        retryMs = failures.note(error);
      }
    }
    this.#isPublishing = false;
  }
}
