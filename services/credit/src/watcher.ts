import type { Logger } from '@skerry/kit';
import { AppError, type CreditState } from '@skerry/protocol';
import type { AccountView } from '@skerry/protocol/api/core/credits';
import type { Network } from './network.ts';
import type { Progress, PurchaseStore } from './purchase-store.ts';

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

/** When an account is looked at. */
export interface Moment {
  /** Unix seconds. */
  readonly now: number;
  /** For how long this service ran while the account was low. */
  readonly warnedSeconds: number;
}

/**
 * What is to be announced of an account, or undefined where that was done. Nothing is exhausted that was not low for as
 * long as the grace period is, by the dates of the announcements and by the time in which this service ran: a clock that was
 * behind when it announced makes the dates alone longer ago than they are. What was bought since has to last for as long to be low again, rather than exhausted: less would
 * buy a grace period, in which instances run for nothing.
 */
export function decideNotice(
  account: AccountView,
  { now, warnedSeconds }: Moment,
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
    Math.min(now - since, warnedSeconds) >= settings.graceSeconds;
  return isDue ? 'exhausted' : undefined;
}

/** What the watcher needs of the core node. */
export type WatchedNetwork = Pick<Network, 'readAccounts' | 'postNotice' | 'listRunning' | 'stopInstance'>;

export interface WatcherOptions {
  readonly network: WatchedNetwork;
  readonly settings: WatchSettings;
  readonly store: Pick<PurchaseStore, 'writeProgress'>;
  /** As an earlier process left it. */
  readonly warned: Progress['warned'];
  readonly now: () => number;
  /** Milliseconds, by a clock that nobody sets. */
  readonly uptime: () => number;
  readonly log: Logger;
}

/** Looks at every account, announces what changed, and stops what may not go on. */
export class Watcher {
  readonly #options: WatcherOptions;
  /** Address -> for how many seconds this service ran while the account was low. */
  #warned: ReadonlyMap<string, number>;
  /** When the last round began. */
  #lookedMs: number | undefined;
  /** Whom something was refused for in the last round: it is told once. */
  #refused: ReadonlySet<string> = new Set();

  constructor(options: WatcherOptions) {
    this.#options = options;
    this.#warned = new Map(Object.entries(options.warned));
  }

  async runRound(): Promise<void> {
    const { network, settings, store, uptime, log } = this.#options;
    const refused = new Set<string>();
    const warned = new Map<string, number>();
    const uptimeMs = uptime();
    const passedSeconds = (uptimeMs - (this.#lookedMs ?? uptimeMs)) / 1000;
    for await (const account of network.readAccounts()) {
      const { address } = account;
      const before = this.#warned.get(address);
      const warnedSeconds = before === undefined ? 0 : before + passedSeconds;
      if (settings.enforcement && account.credit_state === 'low') warned.set(address, warnedSeconds);
      const attempt = async (body: () => Promise<void>) => {
        try {
          await body();
        } catch (error) {
          // What is refused of one account, or of one instance, keeps nobody else from being looked at.
          if (!(error instanceof AppError) || error.kind === 'unavailable') throw error;
          if (!this.#refused.has(address) && !refused.has(address))
            log.warn({ err: error, address }, 'the core node refused what follows from an account');
          refused.add(address);
        }
      };
      await attempt(() => this.#look(account, warnedSeconds, attempt));
    }
    this.#refused = refused;
    this.#lookedMs = uptimeMs;
    const isNoted = warned.size > 0 || this.#warned.size > 0;
    this.#warned = warned;
    if (isNoted) await store.writeProgress({ warned: Object.fromEntries(warned) });
  }

  async #look(
    account: AccountView,
    warnedSeconds: number,
    attempt: (body: () => Promise<void>) => Promise<void>,
  ): Promise<void> {
    const { network, settings, now, log } = this.#options;
    const { address, credit_balance: credits } = account;
    const state = decideNotice(account, { now: Math.floor(now() / 1000), warnedSeconds }, settings);
    if (state !== undefined) {
      await network.postNotice(account, state);
      log.info({ address, state, credits }, 'announced a credit state');
    }
    const isExhausted = (state ?? account.credit_state) === 'exhausted';
    // Who has bought credit since may start instances again: the core node takes that, however little it is.
    if (!isExhausted || !isEmpty(account) || !settings.enforcement) return;
    let stopped = 0;
    for (const instance of await network.listRunning(address))
      await attempt(async () => {
        await network.stopInstance(instance);
        stopped++;
      });
    if (stopped > 0) log.warn({ address, stopped }, 'stopped instances without credit');
  }
}
