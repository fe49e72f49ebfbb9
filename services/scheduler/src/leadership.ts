import { call } from '@skerry/client';
import type { Logger } from '@skerry/kit';
import { SCHEDULER_API } from '@skerry/protocol/api/scheduler';

export type Role = 'leader' | 'standby';

/** A scheduler as it says of itself, in `leadership` of its `/status`. */
export interface Standpoint {
  readonly address: string;
  readonly role: Role;
  /** Since when it has the role, milliseconds since 1970. */
  readonly sinceMs: number;
  /** Whether it knows the network well enough to lead. */
  readonly canLead: boolean;
}

/** What is known of another scheduler. */
export interface Peer {
  readonly url: string;
  /** When it answered last, milliseconds since 1970; undefined if never. */
  readonly seenAtMs: number | undefined;
  readonly standpoint: Standpoint | undefined;
}

/** With when it answered last by the time that passes: a clock that is set makes nobody silent, nor present. */
export interface HeardPeer extends Pick<Peer, 'standpoint'> {
  readonly heardMs: number | undefined;
}

const leadsBefore = (a: Standpoint, b: Standpoint) =>
  a.sinceMs !== b.sinceMs ? a.sinceMs < b.sinceMs : a.address < b.address;

/**
 * Which role a scheduler takes. Of two that lead the one that has led longer goes on; where nobody leads, of those that
 * can the one with the smallest address begins. Who has not been heard of for `takeoverMs` does not count.
 * @param startedMs when this one began to listen to the others, by the time that passes, as is `nowMs`
 */
export function decideRole(
  self: Standpoint,
  peers: readonly HeardPeer[],
  { nowMs, startedMs, takeoverMs }: { nowMs: number; startedMs: number; takeoverMs: number },
): Role {
  if (peers.length === 0) return 'leader';
  if (!self.canLead) return 'standby';
  const present = peers.flatMap(({ heardMs, standpoint }) =>
    standpoint && standpoint.address !== self.address && nowMs - (heardMs ?? 0) < takeoverMs
      ? [standpoint]
      : [],
  );
  const leaders = present.filter(({ role }) => role === 'leader');
  if (self.role === 'leader') return leaders.some((one) => leadsBefore(one, self)) ? 'standby' : 'leader';
  if (leaders.length > 0) return 'standby';
  // One that does not answer may lead all the same: it gets the time that a lost leader gets.
  const isUnheard = peers.some(({ heardMs }) => heardMs === undefined);
  if (isUnheard && nowMs - startedMs < takeoverMs) return 'standby';
  return present.some((one) => one.canLead && one.address < self.address) ? 'standby' : 'leader';
}

export interface LeadershipOptions {
  readonly address: string;
  /** Where the other schedulers are. */
  readonly peerUrls: readonly string[];
  readonly takeoverMs: number;
  readonly canLead: () => boolean;
  /** Told when the role has changed. */
  readonly onRole: (role: Role) => void;
  readonly now: () => number;
  /** Milliseconds of a clock that nobody sets. */
  readonly uptime?: () => number;
  readonly signal: AbortSignal;
  readonly log: Logger;
}

const ASK_TIMEOUT_MS = 2_000;

/**
 * Which of several schedulers speaks. All of them know the same network and would decide the same; that one leads only
 * spares the network what the others would say. So two that lead for a while, each cut off from the other, do no harm:
 * what one has placed the other leaves where it is.
 */
export class Leadership {
  readonly #options: LeadershipOptions;
  readonly #peers = new Map<string, Peer & HeardPeer>();
  readonly #uptime: () => number;
  readonly #startedMs: number;
  #role: Role;
  #sinceMs: number;

  constructor(options: LeadershipOptions) {
    this.#options = options;
    this.#uptime = options.uptime ?? (() => performance.now());
    this.#startedMs = this.#uptime();
    this.#sinceMs = options.now();
    this.#role = options.peerUrls.length === 0 ? 'leader' : 'standby';
    for (const url of options.peerUrls)
      this.#peers.set(url, { url, seenAtMs: undefined, heardMs: undefined, standpoint: undefined });
  }

  get leads(): boolean {
    return this.#role === 'leader';
  }

  get standpoint(): Standpoint {
    const { address, canLead } = this.#options;
    return { address, role: this.#role, sinceMs: this.#sinceMs, canLead: canLead() };
  }

  get peers(): readonly Peer[] {
    return [...this.#peers.values()];
  }

  /** Asks the others and takes the role that follows. */
  async refresh(): Promise<void> {
    const { now, takeoverMs, onRole, log } = this.#options;
    await Promise.all(this.#options.peerUrls.map((url) => this.#ask(url)));
    const role = decideRole(this.standpoint, [...this.#peers.values()], {
      nowMs: this.#uptime(),
      startedMs: this.#startedMs,
      takeoverMs,
    });
    if (role === this.#role) return;
    this.#role = role;
    this.#sinceMs = now();
    log.info({ role }, role === 'leader' ? 'this scheduler leads now' : 'another scheduler leads');
    onRole(role);
  }

  async #ask(url: string): Promise<void> {
    const { now, signal } = this.#options;
    try {
      const options = { timeoutMs: ASK_TIMEOUT_MS, signal };
      const { address, leadership } = await call(url, SCHEDULER_API.getSchedulerStatus, {}, options);
      const { role, since_ms: sinceMs, can_lead: canLead } = leadership;
      const standpoint = { address, role, sinceMs, canLead };
      this.#peers.set(url, { url, seenAtMs: now(), heardMs: this.#uptime(), standpoint });
    } catch {
      // Silence is what counts: it is told by when the peer was seen last.
    }
  }
}
