import type { Logger } from '@skerry/kit';
import type { Network } from './network.ts';

/** What a start takes: until then the core node may be meeting its peers, which is no fault. */
const START_MS = 60_000;

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
  readonly #uptime: () => number;
  #trouble: string | undefined;
  /** The trouble that the log has a warning of. */
  #warned: string | undefined;

  /** @param uptime milliseconds that the process has run */
  constructor(network: StandingNetwork, log: Logger, uptime: () => number = () => performance.now()) {
    this.#network = network;
    this.#log = log;
    this.#uptime = uptime;
  }

  /** A sentence where anything is wrong. */
  get troubles(): readonly string[] {
    return this.#trouble === undefined ? [] : [this.#trouble];
  }

  /** Rejects where the core node does not answer. @returns whether to send anything */
  async check(): Promise<boolean> {
    try {
      if (!(await this.#network.isTrusted())) return this.#note(untrusted(this.#network.address));
      const lag = await this.#network.findLag();
      return lag === null ? this.#note(undefined) : this.#note(behind(lag), this.#uptime() < START_MS);
    } catch (error) {
      this.#warned = undefined;
      this.#trouble = `cannot read the core node: ${(error as Error).message}`;
      throw error;
    }
  }

  /** @returns whether there is none */
  #note(trouble: string | undefined, isStarting = false): boolean {
    if (trouble !== undefined && isStarting && trouble !== this.#trouble) this.#log.info(trouble);
    if (!isStarting) {
      if (trouble !== undefined && trouble !== this.#warned) this.#log.warn(trouble);
      this.#warned = trouble;
    }
    this.#trouble = trouble;
    return trouble === undefined;
  }
}

const behind = (lag: string) => `nothing is charged, announced or stopped for now: ${lag}`;

const untrusted = (address: string) =>
  `the core node does not trust this service, which charges and announces nothing until it does: add ${address} to SKERRY_CORE_CREDIT_PUBLISHERS`;
