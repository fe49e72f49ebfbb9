import { SYNC_API, type SyncStatusView } from '@skerry/protocol/api/core/sync';
import { type CallOptions, call } from './call.ts';

const ASK_TIMEOUT_MS = 5_000;
/** A core node tries a peer that failed again within a minute: by then each one that can be reached has answered. */
const APART_MS = 120_000;

const missingOf = (behind: number) => (behind > 0 ? `: at least ${behind} messages are missing` : '');

/**
 * Whether a core node has what its peers have. Of a node that was restored from a backup, or that meets its peers again, the true decisions
 * are still on their way: what somebody decides without them is dated later, and wins over them.
 */
export class CoreSync {
  readonly #coreUrl: string;
  readonly #options: CallOptions;
  readonly #uptime: () => number;
  /** Whether the node was in step with a peer while this process ran: what it has is not older than that. */
  #wasInStep = false;
  #isInStep = false;
  /** Since when no peer has answered, by the time that passes. */
  #apartSinceMs: number | undefined;

  /** @param uptime milliseconds of a clock that nobody sets */
  constructor(coreUrl: string, options: CallOptions = {}, uptime: () => number = () => performance.now()) {
    this.#coreUrl = coreUrl;
    this.#options = { timeoutMs: ASK_TIMEOUT_MS, ...options };
    this.#uptime = uptime;
  }

  /** Whether the node had what a peer has when it was asked last, or has no peers. */
  get isInStep(): boolean {
    return this.#isInStep;
  }

  /** Why nothing is to be decided by what the node says now, in a sentence; null where it may be. Rejects as a call does. */
  async check(): Promise<string | null> {
    return this.judge(await call(this.#coreUrl, SYNC_API.getSyncStatus, {}, this.#options));
  }

  /** The same of what the node said. */
  judge({ state, behind, peers }: Pick<SyncStatusView, 'state' | 'behind' | 'peers'>): string | null {
    const others = peers.filter((peer) => peer.state !== 'self');
    // Of a peer that is synced the node has everything but what is dated ahead of its clock, which may be so while their clocks differ.
    const hasPeer = others.length === 0 || others.some((peer) => peer.state === 'synced');
    this.#isInStep = state === 'alone' || state === 'synced' || hasPeer;
    if (this.#isInStep) {
      this.#wasInStep = true;
      this.#apartSinceMs = undefined;
      return null;
    }
    if (state === 'syncing' || others.some((peer) => peer.state === 'syncing'))
      return `the core node is still fetching what its peers have${missingOf(behind)}`;
    this.#apartSinceMs ??= this.#uptime();
    // Whoever is cut off goes on: on its side of the line there is nobody else.
    if (this.#wasInStep || this.#uptime() - this.#apartSinceMs >= APART_MS) return null;
    return 'the core node has not reached any of its peers yet';
  }
}
