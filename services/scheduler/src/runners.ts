import type { CoreClient } from '@skerry/client';
import { backoffMs, type Logger, pause } from '@skerry/kit';
import { NETWORK_CHANNEL, NETWORK_POST, type Runner, type RunnersContent } from '@skerry/protocol';
import type { Node } from './view.ts';

/** How a node announces a runtime. */
const FEATURE = 'program:';
/** What one list may hold; nodes beyond it have enough company. */
const RUNNERS_MAX = 256;
const RETRY_BASE_MS = 500;
const RETRY_MAX_MS = 30_000;
/** Nodes that come and go within this time are one change. */
const GATHER_MS = 200;

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

export interface RunnersTellerOptions {
  readonly core: Pick<CoreClient, 'postMessage'>;
  readonly now: () => number;
  readonly signal: AbortSignal;
  readonly log: Logger;
}

/** Tells the network which nodes run programs, each time that changes. */
export class RunnersTeller {
  readonly #options: RunnersTellerOptions;
  #wanted: readonly Runner[] = [];
  /** What a core node has taken. An empty list needs no telling at the start: nobody was told of any. */
  #told = '[]';
  #lastMs = 0;
  #isTelling = false;

  constructor(options: RunnersTellerOptions) {
    this.#options = options;
  }

  offer(runners: readonly Runner[]): void {
    this.#wanted = runners;
    if (!this.#isTelling && JSON.stringify(runners) !== this.#told) void this.#tell();
  }

  async #tell(): Promise<void> {
    const { core, now, signal, log } = this.#options;
    this.#isTelling = true;
    let failures = 0;
    while (JSON.stringify(this.#wanted) !== this.#told) {
      if (!(await pause(failures > 0 ? backoffMs(failures, RETRY_BASE_MS, RETRY_MAX_MS) : GATHER_MS, signal)))
        break;
      const text = JSON.stringify(this.#wanted);
      this.#lastMs = Math.max(now(), this.#lastMs + 1);
      const content: RunnersContent = { runners: [...this.#wanted], decided_at_ms: this.#lastMs };
      try {
        const post = { type: NETWORK_POST.runners, content };
        await core.postMessage({ type: 'POST', channel: NETWORK_CHANNEL.scheduling, content: post });
        this.#told = text;
        failures = 0;
        log.info({ runners: content.runners.map(({ node_id }) => node_id) }, 'told which nodes run programs');
      } catch (error) {
        if (signal.aborted) break;
        failures++;
        if (failures === 1)
          log.warn({ err: error }, 'which nodes run programs could not be told; it is tried again');
      }
    }
    this.#isTelling = false;
  }
}
