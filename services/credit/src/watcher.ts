import type { Logger } from '@skerry/kit';
import { AppError, type CreditState } from '@skerry/protocol';
import type { AccountView } from '@skerry/protocol/api/core/credits';
import type { Network } from './network.ts';

export interface WatchSettings {
  /** A balance that lasts for less is low. */
  readonly lowSeconds: number;
  /** How long it is announced before anything is stopped. */
  readonly graceSeconds: number;
  readonly enforcement: boolean;
}

const isEmpty = (account: AccountView) => BigInt(account.credit_balance_nano) <= 0n;

/** A balance has to last a quarter longer than the limit to be in order again, so that it does not flap. */
const RECOVERED_FACTOR = 1.25;

/**
 * What is to be announced of an account, or undefined where that was done. Nothing is exhausted that was not low for as
 * long as the grace period is. What was bought since has to last for as long to be low again, rather than exhausted: less would
 * buy a grace period, in which instances run for nothing.
 */
export function decideNotice(
  account: AccountView,
  now: number,
  settings: WatchSettings,
): CreditState | undefined {
  const { credit_state: state, credit_state_since: since, runs_out_at: runsOutAt } = account;
  const isUsed = BigInt(account.credit_rate_nano) > 0n;
  const lasts = runsOutAt === null ? Number.POSITIVE_INFINITY : runsOutAt - now;
  const isLow = isUsed && lasts < settings.lowSeconds;
  if (state === null || state === 'ok') return isLow ? 'low' : undefined;
  if (lasts >= settings.lowSeconds * RECOVERED_FACTOR) return 'ok';
  if (state === 'exhausted') return !isEmpty(account) && lasts >= settings.graceSeconds ? 'low' : undefined;
  const isDue =
    settings.enforcement &&
    isEmpty(account) &&
    isUsed &&
    since !== null &&
    now - since >= settings.graceSeconds;
  return isDue ? 'exhausted' : undefined;
}

/** What the watcher needs of the core node. */
export type WatchedNetwork = Pick<Network, 'readAccounts' | 'postNotice' | 'listRunning' | 'stopInstance'>;

/** Looks at every account, announces what changed, and stops what may not go on. */
export class Watcher {
  readonly #network: WatchedNetwork;
  readonly #settings: WatchSettings;
  readonly #now: () => number;
  readonly #log: Logger;
  /** Whom something was refused for in the last round: it is told once. */
  #refused: ReadonlySet<string> = new Set();

  constructor(network: WatchedNetwork, settings: WatchSettings, now: () => number, log: Logger) {
    this.#network = network;
    this.#settings = settings;
    this.#now = now;
    this.#log = log;
  }

  async runRound(): Promise<void> {
    const refused = new Set<string>();
    for await (const account of this.#network.readAccounts()) {
      const { address } = account;
      const attempt = async (body: () => Promise<void>) => {
        try {
          await body();
        } catch (error) {
          // What is refused of one account, or of one instance, keeps nobody else from being looked at.
          if (!(error instanceof AppError) || error.kind === 'unavailable') throw error;
          if (!this.#refused.has(address) && !refused.has(address))
            this.#log.warn({ err: error, address }, 'the core node refused what follows from an account');
          refused.add(address);
        }
      };
      await attempt(() => this.#look(account, attempt));
    }
    this.#refused = refused;
  }

  async #look(account: AccountView, attempt: (body: () => Promise<void>) => Promise<void>): Promise<void> {
    const { address, credit_balance: credits } = account;
    const state = decideNotice(account, Math.floor(this.#now() / 1000), this.#settings);
    if (state !== undefined) {
      await this.#network.postNotice(account, state);
      this.#log.info({ address, state, credits }, 'announced a credit state');
    }
    const isExhausted = (state ?? account.credit_state) === 'exhausted';
    // Who has bought credit since may start instances again: the core node takes that, however little it is.
    if (!isExhausted || !isEmpty(account) || !this.#settings.enforcement) return;
    let stopped = 0;
    for (const instance of await this.#network.listRunning(address))
      await attempt(async () => {
        await this.#network.stopInstance(instance);
        stopped++;
      });
    if (stopped > 0) this.#log.warn({ address, stopped }, 'stopped instances without credit');
  }
}
