import { join } from 'node:path';
import { readAggregate } from '@skerry/client';
import { type Logger, pause, readTextIfAny, writeFileAtomically } from '@skerry/kit';
import { type DomainClaim, type DomainState, decideDomains, readClaims } from './claims.ts';
import { type DomainRules, readProof } from './dns.ts';

/** An instance of this node, as far as names matter. */
export interface NamedInstance {
  readonly id: string;
  readonly owner: string;
  readonly ipv6: string;
  readonly ipv4: string | null;
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
}

const FILE = 'domains.json';
const REFRESH_MS = 600_000;
const JITTER = 0.15;
const RETRY_MS = 30_000;
/** Proofs that are asked for at a time. */
const CONCURRENCY = 16;

/** The custom domains of this node's instances. What was proven is kept over restarts, and while nobody can be asked. */
export class DomainRegistry {
  readonly #options: RegistryOptions;
  #states: readonly DomainState[] = [];
  #wake = Promise.withResolvers<void>();

  constructor(options: RegistryOptions) {
    this.#options = options;
  }

  async load(): Promise<void> {
    const text = await readTextIfAny(join(this.#options.dataDir, FILE));
    if (text !== undefined) this.#states = JSON.parse(text) as DomainState[];
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
      return [{ name, item_hash: instanceId, ipv6: instance.ipv6, ipv4 }];
    });
  }

  /** Something changed: looks again soon. */
  wake(): void {
    this.#wake.resolve();
  }

  /** Looks again and again, until the signal ends. */
  async work(): Promise<void> {
    const { signal, log } = this.#options;
    signal.addEventListener('abort', () => this.wake(), { once: true });
    while (!signal.aborted) {
      this.#wake = Promise.withResolvers<void>();
      let waitMs = REFRESH_MS * (1 + JITTER * (2 * Math.random() - 1));
      try {
        await this.refresh();
      } catch (error) {
        if (signal.aborted) return;
        log.warn({ err: error }, 'custom domains could not be checked and stay as they are');
        waitMs = RETRY_MS;
      }
      const either = new AbortController();
      await Promise.race([this.#wake.promise, pause(waitMs, AbortSignal.any([signal, either.signal]))]);
      either.abort();
    }
  }

  /** Reads the owners' wishes and asks the DNS for each. Throws UPSTREAM_UNAVAILABLE, UNEXPECTED_ANSWER. */
  async refresh(): Promise<void> {
    const { coreUrl, instances, rules, dataDir, log } = this.#options;
    const here = instances();
    const claims: DomainClaim[] = [];
    for (const owner of new Set(here.map((one) => one.owner)))
      claims.push(...readClaims(owner, await readAggregate(coreUrl, owner, 'domains')));
    const own = claims.filter((claim) =>
      here.some(({ id, owner }) => id === claim.instanceId && owner === claim.owner),
    );
    const proven: (DomainClaim & Pick<DomainState, 'proof'>)[] = [];
    for (let at = 0; at < own.length; at += CONCURRENCY) {
      const part = own.slice(at, at + CONCURRENCY);
      const proofs = part.map(async (one) => ({
        ...one,
        proof: await readProof(one.name, one.owner, rules),
      }));
      proven.push(...(await Promise.all(proofs)));
    }
    const next = decideDomains(proven, this.#states);
    if (JSON.stringify(next) === JSON.stringify(this.#states)) return;
    this.#states = next;
    await writeFileAtomically(join(dataDir, FILE), `${JSON.stringify(next)}\n`, 0o644);
    log.info({ domains: next.length, active: next.filter((one) => one.isActive).length }, 'custom domains');
  }
}
