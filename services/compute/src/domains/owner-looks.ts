import { readAggregate } from '@skerry/client';
import { Failures, type Logger, Slots } from '@skerry/kit';
import { AppError, DOMAINS_KEY } from '@skerry/protocol';
import { type DomainClaim, type ProvenClaim, readClaims } from './claims.ts';
import { type DomainRules, readProof } from './dns.ts';

export interface LooksOptions {
  readonly coreUrl: string;
  readonly rules: DomainRules;
  readonly instances: () => readonly { readonly id: string; readonly owner: string }[];
  readonly log: Logger;
  readonly signal: AbortSignal;
  /** Told after each look, and when somebody has no instance here any more. */
  readonly onLooked: () => Promise<void>;
}

/** Of every owner, unless something wakes it. */
const REFRESH_MS = 600_000;
const JITTER = 0.15;
/** After a look an owner rests, however often it is woken: so long at least, and for each claim of which the DNS was asked. */
const REST_MS = 2_000;
const REST_PER_CLAIM_MS = 100;
/** And so many times as long as its aggregate took to be read. */
const REST_PER_READING = 10;
const FAILED_BASE_MS = 30_000;
/** Aggregates that are read at a time: one may have 32 MiB. */
const READINGS = 2;
/** Claims of one owner, and of all, whose proof is asked for at a time. */
const PROOFS_PER_OWNER = 4;
const PROOFS = 256;

interface Owner {
  claims: readonly ProvenClaim[];
  /** Its instances here, as they were at the last look: another may have claims of its own. */
  instances: readonly string[];
  /** When it is looked at next, and before when it is not, whatever wakes it. Milliseconds of `performance.now()`. */
  dueMs: number;
  restsUntilMs: number;
  isLooking: boolean;
  readonly failures: Failures;
}

const isAway = (error: unknown) => error instanceof AppError && error.code === 'UPSTREAM_UNAVAILABLE';

const isSame = (one: readonly string[], other: readonly string[] = []) => one.join() === other.join();

/**
 * Looks at what owners claim, and at what the DNS says of it: at each owner by itself, so that one whose aggregate cannot be
 * read, or whose name servers are slow, keeps nobody else waiting.
 */
export class OwnerLooks {
  readonly #options: LooksOptions;
  readonly #owners = new Map<string, Owner>();
  readonly #running = new Set<Promise<void>>();
  readonly #readings = new Slots(READINGS);
  readonly #proofs = new Slots(PROOFS);

  constructor(options: LooksOptions) {
    this.#options = options;
  }

  /** What was found before this process began. */
  remember(claims: readonly ProvenClaim[]): void {
    for (const [owner, own] of Map.groupBy(claims, (one) => one.owner)) this.#take(owner).claims = own;
  }

  claims(): ProvenClaim[] {
    return Array.from(this.#owners.values()).flatMap(({ claims }) => claims);
  }

  /** @returns whether it is one of those that are looked at */
  wake(owner: string): boolean {
    const known = this.#owners.get(owner);
    if (known) known.dueMs = 0;
    return known !== undefined;
  }

  /** Begins to look at every owner that is due. */
  startDue(): void {
    const here = this.#followInstances();
    const nowMs = performance.now();
    for (const [owner, state] of this.#owners) {
      const isDue = state.dueMs <= nowMs || !isSame(state.instances, here.get(owner));
      if (isDue && !state.isLooking && state.restsUntilMs <= nowMs) this.#start(owner, state);
    }
  }

  async lookAtAll(): Promise<void> {
    await this.settled();
    this.#followInstances();
    for (const [owner, state] of this.#owners) this.#start(owner, state);
    await this.settled();
  }

  /** Done when nothing that runs now runs any more. */
  async settled(): Promise<void> {
    await Promise.all(this.#running);
  }

  #instancesByOwner(): Map<string, readonly string[]> {
    const grouped = Map.groupBy(this.#options.instances(), ({ owner }) => owner);
    return new Map(Array.from(grouped, ([owner, own]) => [owner, own.map(({ id }) => id).sort()]));
  }

  #take(owner: string): Owner {
    const known = this.#owners.get(owner);
    if (known) return known;
    const { log } = this.#options;
    const what = "an owner's custom domains cannot be read; those that are known stay";
    const failures = new Failures({ log, what, fields: { owner }, baseMs: FAILED_BASE_MS });
    const made: Owner = {
      claims: [],
      instances: [],
      dueMs: 0,
      restsUntilMs: 0,
      isLooking: false,
      failures,
    };
    this.#owners.set(owner, made);
    return made;
  }

  /** Whoever has an instance here is looked at, and nobody else. */
  #followInstances(): Map<string, readonly string[]> {
    const here = this.#instancesByOwner();
    for (const owner of here.keys()) this.#take(owner);
    const gone = [...this.#owners.keys()].filter((owner) => !here.has(owner));
    for (const owner of gone) this.#owners.delete(owner);
    if (gone.length > 0) this.#track(this.#options.onLooked());
    return here;
  }

  #track(work: Promise<void>): void {
    const tracked = work
      .catch((error) => this.#options.log.error({ err: error }, 'custom domains cannot be decided'))
      .finally(() => this.#running.delete(tracked));
    this.#running.add(tracked);
  }

  #postpone(state: Owner, error: unknown): void {
    // That the core node is away, whoever follows its events tells.
    const againMs = isAway(error) ? FAILED_BASE_MS : state.failures.note(error);
    state.dueMs = Math.min(state.dueMs, performance.now() + againMs);
  }

  #start(owner: string, state: Owner): void {
    state.isLooking = true;
    state.dueMs = performance.now() + REFRESH_MS * (1 + JITTER * (2 * Math.random() - 1));
    state.instances = this.#instancesByOwner().get(owner) ?? [];
    const looking = this.#look(owner, state)
      .catch((error) => this.#postpone(state, error))
      .finally(() => {
        state.isLooking = false;
      });
    this.#track(looking);
  }

  async #look(owner: string, state: Owner): Promise<void> {
    const { signal, onLooked } = this.#options;
    const { claims, tookMs } = await this.#read(owner, state);
    const own = claims.filter(({ instanceId }) => state.instances.includes(instanceId));
    const proven = await this.#prove(own);
    if (signal.aborted) return;
    state.claims = proven;
    const restMs = Math.max(REST_MS, REST_PER_READING * tookMs, REST_PER_CLAIM_MS * own.length);
    state.restsUntilMs = performance.now() + restMs;
    await onLooked();
  }

  /** What an owner claims; where the core node does not answer that, what is known of it. */
  async #read(owner: string, state: Owner): Promise<{ claims: readonly DomainClaim[]; tookMs: number }> {
    const { coreUrl, signal } = this.#options;
    using _slot = await this.#readings.take();
    const begunMs = performance.now();
    let claims: readonly DomainClaim[] = state.claims;
    try {
      claims = readClaims(owner, await readAggregate(coreUrl, owner, DOMAINS_KEY, { signal }));
      state.failures.clear();
    } catch (error) {
      if (!signal.aborted) this.#postpone(state, error);
    }
    return { claims, tookMs: performance.now() - begunMs };
  }

  #prove(claims: readonly DomainClaim[]): Promise<ProvenClaim[]> {
    const { rules, signal } = this.#options;
    const own = new Slots(PROOFS_PER_OWNER);
    const proveOne = async ({ name, owner, instanceId }: DomainClaim): Promise<ProvenClaim> => {
      using _slot = await own.take();
      using _place = await this.#proofs.take();
      return { name, owner, instanceId, proof: await readProof(name, owner, rules, signal) };
    };
    return Promise.all(claims.map(proveOne));
  }
}
