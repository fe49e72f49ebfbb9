import { type CoreClient, type RequestOptions, requestJson } from '@skerry/client';
import {
  AppError,
  CREDIT_CHANNEL,
  CREDIT_POST,
  type CreditState,
  NETWORK_POST,
  type ResourceKind,
} from '@skerry/protocol';
import { type Purchase, signPurchase } from './purchase.ts';
import type { Sale } from './sales.ts';
import { indexWish } from './transfers.ts';

/** What the service says to the core node, and asks of it. */

export interface Account {
  readonly address: string;
  readonly credit_balance: number;
  readonly credit_balance_nano: string;
  readonly credit_rate_nano: string;
  readonly credit_state: CreditState | null;
  readonly credit_state_since: number | null;
  readonly runs_out_at: number | null;
}

export interface Charges {
  readonly start_date: number;
  readonly end_date: number;
  readonly credits: readonly {
    readonly address: string;
    readonly ref: string;
    readonly nanocredits: string;
  }[];
}

const ACCOUNTS_PAGE = 100;

interface History {
  readonly credit_history: readonly {
    readonly log_index: number | null;
    readonly chain_id: number | null;
    readonly credit_ref: string;
  }[];
}

export class Network {
  readonly #core: CoreClient;
  readonly #options: RequestOptions;

  constructor(core: CoreClient, signal: AbortSignal) {
    this.#core = core;
    this.#options = { signal };
  }

  get coreUrl(): string {
    return this.#core.url;
  }

  #get<T>(path: string): Promise<T> {
    return requestJson<T>(`${this.#core.url}/api/v0${path}`, this.#options);
  }

  /** The core node's own word on which chain a network is. Throws NETWORK_NOT_FOUND. */
  async checkChain({ network, chainId }: Sale): Promise<void> {
    const status = await this.#core.getIndexerStatus(network);
    if (status.chain_id === chainId) return;
    throw new AppError(
      'INVALID_CONFIG',
      `the core node's network ${network} is chain ${status.chain_id}, the sales file says ${chainId}`,
    );
  }

  /** Asks the core node to index a token. */
  async askForIndex(sale: Sale): Promise<void> {
    await this.#core.postMessage({
      type: 'POST',
      content: { type: NETWORK_POST.index, content: indexWish(sale) },
    });
  }

  /** Sends the message that credits a purchase: the same one, however often. */
  async sendPurchase(purchase: Purchase): Promise<void> {
    const { body } = signPurchase(purchase, this.#core.signer);
    await requestJson(`${this.#core.url}/api/v0/messages`, { ...this.#options, method: 'POST', body });
  }

  /** The message by which the core node credits a purchase; undefined where it does not. */
  async findCredit({ address, transactionHash, logIndex, chainId }: Purchase): Promise<string | undefined> {
    const { credit_history: rows } = await this.#get<History>(
      `/addresses/${address}/credit_history?kind=purchase&limit=100&ref=${transactionHash}`,
    );
    return rows.find((row) => row.log_index === logIndex && row.chain_id === chainId)?.credit_ref;
  }

  /** What is not charged yet of the period that a moment lies in. @param time Unix seconds */
  readCharges(kind: ResourceKind, time: number): Promise<Charges> {
    return this.#get<Charges>(`/credits/charges?kind=${kind}&time=${time}`);
  }

  async postExpense(expense: Charges): Promise<void> {
    const content = { type: CREDIT_POST.expense, content: { expense } };
    await this.#core.postMessage({ type: 'POST', channel: CREDIT_CHANNEL, content });
  }

  async postNotice(account: Account, state: CreditState): Promise<void> {
    const { address, credit_balance: credits, runs_out_at } = account;
    const notice = { address, state, credits, runs_out_at };
    const content = { type: CREDIT_POST.notice, content: { notice } };
    await this.#core.postMessage({ type: 'POST', channel: CREDIT_CHANNEL, content });
  }

  async *readAccounts(): AsyncGenerator<Account> {
    for (let after = ''; ; ) {
      const query = new URLSearchParams({ after, limit: String(ACCOUNTS_PAGE) });
      const { accounts } = await this.#get<{ accounts: Account[] }>(`/credits/accounts?${query}`);
      yield* accounts;
      if (accounts.length < ACCOUNTS_PAGE) return;
      after = accounts.at(-1)!.address;
    }
  }

  /** Stops what an owner has running. @returns how many instances were asked to stop */
  async stopInstances(owner: string): Promise<number> {
    const { instances } = await this.#core.readAllInstances({ address: owner });
    const running = instances.filter(({ desired }) => desired === 'running');
    for (const { instance_id, updated_at } of running)
      await this.#core.controlInstance(instance_id, 'stop', updated_at);
    return running.length;
  }
}
