import type { Logger } from '@skerry/kit';
import type { Network } from './network.ts';

/** What is asked of the core node. */
type StandingNetwork = Pick<Network, 'isTrusted' | 'findLag' | 'address'>;

/**
 * Whether the core node answers, takes this service's word, and has what its peers have. What a service sends that is not trusted is
 * stored for good and has no effect, so that the same would follow from the next round. By a node that lacks messages, owners would be
 * charged for what they have deleted, and stopped although they have paid.
 */
export class Standing {
  readonly #network: StandingNetwork;
  readonly #log: Logger;
  #trouble: string | undefined;

  constructor(network: StandingNetwork, log: Logger) {
    this.#network = network;
    this.#log = log;
  }

  /** A sentence where anything is wrong. */
  get troubles(): readonly string[] {
    return this.#trouble === undefined ? [] : [this.#trouble];
  }

  /** Rejects where the core node does not answer. @returns whether to send anything */
  async check(): Promise<boolean> {
    try {
      const trouble = await this.#findTrouble();
      this.#note(trouble);
      return trouble === undefined;
    } catch (error) {
      this.#trouble = `cannot read the core node: ${(error as Error).message}`;
      throw error;
    }
  }

  async #findTrouble(): Promise<string | undefined> {
    if (!(await this.#network.isTrusted())) return untrusted(this.#network.address);
    const lag = await this.#network.findLag();
    return lag === null ? undefined : `nothing is charged, announced or stopped for now: ${lag}`;
  }

  #note(trouble: string | undefined): void {
    if (trouble !== undefined && trouble !== this.#trouble) this.#log.warn(trouble);
    this.#trouble = trouble;
  }
}

const untrusted = (address: string) =>
  `the core node does not trust this service, which charges and announces nothing until it does: add ${address} to SKERRY_CORE_CREDIT_PUBLISHERS`;
