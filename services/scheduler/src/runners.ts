import type { CoreClient } from '@skerry/client';
import { Failures, type Logger, pause } from '@skerry/kit';
import {
  LIMITS,
  NETWORK_CHANNEL,
  NETWORK_POST,
  RUNNERS_MAX,
  RUNTIMES_MAX,
  type Runner,
  type RunnersContent,
} from '@skerry/protocol';
import type { Dating } from './dating.ts';
import type { Node } from './view.ts';

/** How a node announces a runtime. */
const FEATURE = 'program:';
/** Of the list beside its nodes. */
const ENVELOPE_CHARS = 1_024;
/** The share of a node, so that a full list travels inside its message. */
const RUNNER_CHARS_MAX = Math.floor((LIMITS.inlineContentChars - ENVELOPE_CHARS) / RUNNERS_MAX);
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

/** A node as a list has it; undefined where it runs nothing, or its URL and runtimes take more than its share. */
function runnerOf({ nodeId, address, url, features }: Node): Runner | undefined {
  const said = features.filter((one) => one.startsWith(FEATURE)).map((one) => one.slice(FEATURE.length));
  const runtimes = [...new Set(said)].toSorted().slice(0, RUNTIMES_MAX);
  if (runtimes.length === 0) return undefined;
  const runner = { node_id: nodeId, node_address: address, url, runtimes };
  return JSON.stringify(runner).length < RUNNER_CHARS_MAX ? runner : undefined;
}

const byId = (a: Runner, b: Runner) => (a.node_id < b.node_id ? -1 : 1);

/**
 * The nodes that programs may be sent to. Where they are too many, those that the operator vouches for come first: anybody can make keys
 * until an id is small. A core node refuses a list for one node of it, so no node's words are taken as they come. Pure.
 * @param nodes those that proved their key and are trusted
 */
export function listRunners(
  nodes: Iterable<Node>,
  isListed: (nodeAddress: string) => boolean = () => false,
): Runner[] {
  const runners = Array.from(nodes, runnerOf).filter((runner) => runner !== undefined);
  const rankOf = ({ node_address: address }: Runner) => (isListed(address) ? 0 : 1);
  return runners
    .toSorted((a, b) => rankOf(a) - rankOf(b) || byId(a, b))
    .slice(0, RUNNERS_MAX)
    .toSorted(byId);
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
  /** Undefined while there is nothing to say. */
  #wanted: readonly Runner[] | undefined;
  /** What a core node has taken. At the start an empty list is no news. Undefined: another scheduler may have told any list. */
  #published: string | undefined = '[]';
  /** For the last list; 0 before the first. */
  #gatheredMs = 0;
  #publishedMs = 0;
  #isPublishing = false;
  /** Ends when another scheduler speaks. */
  #term = new AbortController();

  constructor(options: RunnersPublisherOptions) {
    this.#options = options;
  }

  /** This scheduler speaks again: others may have published another list meanwhile. */
  takeOver(): void {
    this.#term.abort();
    this.#term = new AbortController();
    this.#published = undefined;
  }

  /** Another scheduler speaks: a list that waits would be dated after that one's, and win. */
  standDown(): void {
    this.#term.abort();
    this.#wanted = undefined;
  }

  offer(runners: readonly Runner[]): void {
    this.#wanted = runners;
    if (!this.#isPublishing && this.#isDue) void this.#publish();
  }

  get #isDue(): boolean {
    const isOver = this.#options.signal.aborted || this.#term.signal.aborted;
    return !isOver && this.#wanted !== undefined && JSON.stringify(this.#wanted) !== this.#published;
  }

  #gather(): number {
    this.#gatheredMs = decideGatherMs(this.#gatheredMs, performance.now() - this.#publishedMs);
    return this.#gatheredMs;
  }

  async #publish(): Promise<void> {
    const { dating, signal, log } = this.#options;
    this.#isPublishing = true;
    const failures = new Failures({
      log,
      what: 'the list of nodes that run programs could not be published; retrying',
      baseMs: RETRY_BASE_MS,
      maxMs: RETRY_MAX_MS,
    });
    let retryMs: number | undefined;
    while (this.#isDue) {
      const term = this.#term;
      const isOver = AbortSignal.any([signal, term.signal]);
      if (!(await pause(retryMs ?? this.#gather(), isOver))) continue;
      const runners = [...(this.#wanted ?? [])];
      try {
        await dating.date((decidedAtMs) => this.#send(runners, decidedAtMs), isOver);
        if (term === this.#term) this.#published = JSON.stringify(runners);
        this.#publishedMs = performance.now();
        failures.clear();
        retryMs = undefined;
        log.info({ runners: runners.map(({ node_id }) => node_id) }, 'published which nodes run programs');
      } catch (error) {
        retryMs = isOver.aborted ? undefined : failures.note(error);
      }
    }
    this.#isPublishing = false;
  }

  async #send(runners: Runner[], decidedAtMs: number): Promise<void> {
    const content: RunnersContent = { runners, decided_at_ms: decidedAtMs };
    const post = { type: NETWORK_POST.runners, content };
    await this.#options.core.postMessage({
      type: 'POST',
      channel: NETWORK_CHANNEL.scheduling,
      content: post,
    });
  }
}
