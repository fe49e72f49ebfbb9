import { type CallOptions, type CoreClient, call } from '@skerry/client';
import { CoreSync } from '@skerry/client/core-sync';
import {
  AppError,
  CREDIT_CHANNEL,
  CREDIT_POST,
  type CreditState,
  type InstanceView,
  LIMITS,
  NETWORK_POST,
  type ResourceKind,
} from '@skerry/protocol';
import { type AccountView, type ChargesView, CREDITS_API } from '@skerry/protocol/api/core/credits';
import { MESSAGES_API } from '@skerry/protocol/api/core/messages';
import { type Purchase, signPurchase } from './purchase.ts';
import type { Sale } from './sales.ts';
import { indexWish } from './transfers.ts';

/** What the service says to the core node, and asks of it. */

const ACCOUNTS_PAGE = 100;
/** A minute less than nodes take, for their clocks. */
const STOP_AHEAD_SECONDS_MAX = LIMITS.futureSeconds - 60;

export class Network {
  readonly #core: CoreClient;
  readonly #options: CallOptions;
  readonly #sync: CoreSync;

  constructor(core: CoreClient, signal: AbortSignal) {
    this.#core = core;
    this.#options = { signal };
    this.#sync = new CoreSync(core.url, { signal });
  }

  get coreUrl(): string {
    return this.#core.url;
  }

  /** What the service signs with. */
  get address(): string {
    return this.#core.signer.address;
  }

  /** Whether the core node takes this service's word. Throws UPSTREAM_UNAVAILABLE. */
  async isTrusted(): Promise<boolean> {
    const { trust } = await this.#core.getInfo();
    return trust.credit_publishers.value.includes(this.address);
  }

  /** Why the core node may lack charges or payments that its peers have; null where it does not. Throws UPSTREAM_UNAVAILABLE. */
  findLag(): Promise<string | null> {
    return this.#sync.check();
  }

  /** The core node's own word on which chain a network is. Throws NETWORK_NOT_FOUND. */
  async checkChain({ network, chainId }: Sale): Promise<void> {
    const status = await this.#core.getNetwork(network);
    if (status.chain_id === chainId) return;
    throw new AppError(
      'INVALID_CONFIG',
      `the core node's network ${network} is chain ${status.chain_id}, but the sales file says ${chainId}`,
    );
  }

  /** Asks the core node to index a token. @returns the hash of the message that asks */
  async askForIndex(sale: Sale): Promise<string> {
    const { item_hash: hash } = await this.#core.postMessage({
      type: 'POST',
      content: { type: NETWORK_POST.index, content: indexWish(sale) },
    });
    return hash;
  }

  /** Why the core node refused a request to index a token; undefined where it did not, or has not read it yet. */
  async findIndexRefusal(hash: string): Promise<string | undefined> {
    const requests = await this.#core.listIndexRequests(this.address);
    return requests.find(({ item_hash: one }) => one === hash)?.reason?.message;
  }

  /** Sends the message that credits a purchase: the same one, however often. */
  async sendPurchase(purchase: Purchase): Promise<void> {
    const { body } = signPurchase(purchase, this.#core.signer);
    await call(this.#core.url, MESSAGES_API.submitMessage, { body }, this.#options);
  }

  /** The message by which the core node credits a purchase; undefined where it does not. */
  async findCredit({ address, id }: Purchase): Promise<string | undefined> {
    const { credit_history: rows } = await call(
      this.#core.url,
      CREDITS_API.listCreditHistory,
      // A transaction may have more transfers than a page has rows.
      { params: { address }, query: { transfer: id, limit: 1 } },
      this.#options,
    );
    return rows[0]?.credit_ref;
  }

  /** What is not charged yet of the period that a moment lies in. @param time Unix seconds */
  readCharges(kind: ResourceKind, time: number): Promise<ChargesView> {
    return call(this.#core.url, CREDITS_API.listCharges, { query: { kind, time } }, this.#options);
  }

  async postExpense(expense: ChargesView): Promise<void> {
    const content = { type: CREDIT_POST.expense, content: { expense } };
    await this.#core.postMessage({ type: 'POST', channel: CREDIT_CHANNEL, content });
  }

  async postNotice(account: AccountView, state: CreditState): Promise<void> {
    const { address, credit_balance: credits, runs_out_at } = account;
    const notice = { address, state, credits, runs_out_at };
    const content = { type: CREDIT_POST.notice, content: { notice } };
    await this.#core.postMessage({ type: 'POST', channel: CREDIT_CHANNEL, content });
  }

  async *readAccounts(): AsyncGenerator<AccountView> {
    for (let after = ''; ; ) {
      const query = { after, limit: ACCOUNTS_PAGE };
      const { accounts } = await call(this.#core.url, CREDITS_API.listAccounts, { query }, this.#options);
      yield* accounts;
      if (accounts.length < ACCOUNTS_PAGE) return;
      after = accounts.at(-1)!.address;
    }
  }

  /** What an owner has running. */
  async listRunning(owner: string): Promise<InstanceView[]> {
    const { instances } = await this.#core.readAllInstances({ address: owner });
    return instances.filter(({ desired }) => desired === 'running');
  }

  /**
   * A stop has to be later than the last control alone, but the core node tells only of the last change: an owner who renames an
   * instance all the time, as far ahead as anybody may, would have each stop refused. Of a control that is dated later than the stop, a
   * later round's stop comes after it.
   */
  async stopInstance({ instance_id, updated_at }: InstanceView): Promise<void> {
    const latest = Math.floor(Date.now() / 1000) + STOP_AHEAD_SECONDS_MAX;
    await this.#core.controlInstance(instance_id, 'stop', Math.min(updated_at, latest));
  }
}
