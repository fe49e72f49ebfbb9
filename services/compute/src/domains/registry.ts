import { join } from 'node:path';
import { Failures, type Logger, pause, readJsonOrSetAside, writeFileAtomically } from '@skerry/kit';
import { normaliseAddress } from '@skerry/protocol';
import { type DomainState, decideDomains, parseDomainStates } from './claims.ts';
import type { DomainRules } from './dns.ts';
import { OwnerLooks } from './owner-looks.ts';

/** An instance of this node, as far as names matter. */
export interface NamedInstance {
  readonly id: string;
  readonly owner: string;
  readonly ipv6: string;
  readonly ipv4: string | null;
  readonly proxyProtocol?: boolean | undefined;
}

export interface RegistryOptions {
  readonly coreUrl: string;
  readonly dataDir: string;
  readonly rules: DomainRules;
  readonly instances: () => NamedInstance[];
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/** Where a custom domain leads, for whoever passes traffic on. */
export interface DomainRoute {
  readonly name: string;
  readonly item_hash: string;
  readonly ipv6: string;
  readonly ipv4: { readonly public: string | null; readonly local: string | null };
  /** Its server expects a header of the PROXY protocol. */
  readonly proxy_protocol?: true;
}

const FILE = 'domains.json';
/** Between two looks at which owners are due. */
const TICK_MS = 1_000;

/** The custom domains of this node's instances. What was proven is kept over restarts, and while nobody can be asked. */
export class DomainRegistry {
  readonly #options: RegistryOptions;
  readonly #looks: OwnerLooks;
  #states: readonly DomainState[] = [];
  #stored: readonly DomainState[] = [];
  #storing: Promise<void> = Promise.resolve();
  readonly #unstored: Failures;
  #wake = Promise.withResolvers<void>();

  constructor(options: RegistryOptions) {
    this.#options = options;
    this.#looks = new OwnerLooks({ ...options, onLooked: () => this.#decide() });
    this.#unstored = new Failures({
      log: options.log,
      what: 'the custom domains could not be stored and are kept in memory',
    });
  }

  async load(): Promise<void> {
    const { dataDir, log } = this.#options;
    const instead = 'the custom domains are asked for again';
    const options = { parse: parseDomainStates, instead, log };
    const states = await readJsonOrSetAside(join(dataDir, FILE), options);
    if (states === undefined) return;
    this.#states = this.#stored = states;
    this.#looks.remember(states);
  }

  list(): readonly DomainState[] {
    return this.#states;
  }

  routes(hostIpv4: string | null): DomainRoute[] {
    const instances = new Map(this.#options.instances().map((one) => [one.id, one]));
    return this.#states.flatMap(({ name, instanceId, isActive }) => {
      const instance = instances.get(instanceId);
      if (!isActive || !instance) return [];
      const ipv4 = { public: hostIpv4, local: instance.ipv4 };
      const { ipv6, proxyProtocol } = instance;
      const wish = proxyProtocol ? ({ proxy_protocol: true } as const) : {};
      return [{ name, item_hash: instanceId, ipv6, ipv4, ...wish }];
    });
  }

  /** Something changed for an owner: looks again soon. Of others, who have no instance here, nothing is looked at. */
  wake(owner: string): void {
    if (this.#looks.wake(normaliseAddress(owner))) this.#wake.resolve();
  }

  /** Looks at every owner again and again, each when it is due, until the signal ends. */
  async work(): Promise<void> {
    const { signal } = this.#options;
    signal.addEventListener('abort', () => this.#wake.resolve(), { once: true });
    while (!signal.aborted) {
      this.#wake = Promise.withResolvers<void>();
      this.#looks.startDue();
      const either = new AbortController();
      await Promise.race([this.#wake.promise, pause(TICK_MS, AbortSignal.any([signal, either.signal]))]);
      either.abort();
    }
    await this.#looks.settled();
  }

  /** Looks at every owner now, and is done when all have been looked at. */
  async refresh(): Promise<void> {
    await this.#looks.lookAtAll();
  }

  /** With what was found of one more owner. Nobody waits for the others. */
  async #decide(): Promise<void> {
    const { instances, log } = this.#options;
    const here = new Set(instances().map(({ id, owner }) => `${id} ${owner}`));
    const claims = this.#looks.claims().filter(({ instanceId, owner }) => here.has(`${instanceId} ${owner}`));
    const next = decideDomains(claims, this.#states);
    if (JSON.stringify(next) !== JSON.stringify(this.#states)) {
      this.#states = next;
      log.info({ domains: next.length, active: next.filter((one) => one.isActive).length }, 'custom domains');
    }
    await this.#store();
  }

  /** One after the other, the newest once. What could not be written is tried again after the next look. */
  async #store(): Promise<void> {
    const { dataDir } = this.#options;
    this.#storing = this.#storing.then(async () => {
      const states = this.#states;
      if (states === this.#stored) return;
      try {
        await writeFileAtomically(join(dataDir, FILE), `${JSON.stringify(states)}\n`, 0o644);
        this.#stored = states;
        this.#unstored.clear();
      } catch (error) {
        this.#unstored.note(error);
      }
    });
    await this.#storing;
  }
}
