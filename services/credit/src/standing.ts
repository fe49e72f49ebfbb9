import type { Logger } from '@skerry/kit';
import type { Network } from './network.ts';

/**
 * Whether the core node answers, and whether it takes this service's word. What a service sends that is not trusted is stored
 * for good and has no effect, so that the same would follow from the next round.
 */
export class Standing {
  readonly #network: Pick<Network, 'isTrusted' | 'address'>;
  readonly #log: Logger;
  #trouble: string | undefined;

  constructor(network: Pick<Network, 'isTrusted' | 'address'>, log: Logger) {
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
      const isTrusted = await this.#network.isTrusted();
      this.#note(isTrusted ? undefined : untrusted(this.#network.address));
      return isTrusted;
    } catch (error) {
      this.#trouble = `cannot read the core node: ${(error as Error).message}`;
      throw error;
    }
  }

  #note(trouble: string | undefined): void {
    if (trouble !== undefined && trouble !== this.#trouble) this.#log.warn(trouble);
    this.#trouble = trouble;
  }
}

const untrusted = (address: string) =>
  `the core node does not trust this service, which charges and announces nothing until it does: add ${address} to SKERRY_CORE_CREDIT_PUBLISHERS`;
