import type { Logger } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import type { Network } from './network.ts';
import { isTooLittle, type Purchase, quoteTransfer } from './purchase.ts';
import type { PurchaseStore } from './purchase-store.ts';
import type { Purchases } from './purchases.ts';
import { placeOf, type Sale } from './sales.ts';
import { readTransfers } from './transfers.ts';

/** What it asks the core node. */
export type SellingNetwork = Pick<
  Network,
  'coreUrl' | 'checkChain' | 'askForIndex' | 'findIndexRefusal' | 'findCredit' | 'sendPurchase'
>;

export interface SellerOptions {
  readonly sales: readonly Sale[];
  readonly network: SellingNetwork;
  readonly store: PurchaseStore;
  readonly purchases: Purchases;
  readonly scanned: Readonly<Record<string, number>>;
  readonly now: () => number;
  readonly signal: AbortSignal;
  readonly log: Logger;
}

/** Messages that are sent in one round before transfers are looked for again. */
const SENT_PER_ROUND = 200;
/** Spans that are read of one sale in one round. */
const SPANS_PER_ROUND = 50;

interface Asked {
  /** Of the message. */
  readonly hash: string;
  /** Why the core node refused it, once it is known: the node keeps it for a day. */
  refusal: string | undefined;
}

/**
 * Transfers become purchases when they are final: first on disk, then as signed messages, and done when the core node
 * shows them. A kill at any line repeats what was not written down, and repeating changes nothing.
 */
export class Seller {
  readonly #options: SellerOptions;
  readonly #scanned: Record<string, number>;
  /** Place -> what the core node was asked to index. */
  readonly #asked = new Map<string, Asked>();
  readonly #troubles = new Map<string, string>();

  constructor(options: SellerOptions) {
    this.#options = options;
    this.#scanned = { ...options.scanned };
  }

  /** What keeps purchases from being credited, each a sentence. */
  get troubles(): readonly string[] {
    return [...this.#troubles.values()];
  }

  async runRound(): Promise<void> {
    for (const sale of this.#options.sales) await this.#guard(placeOf(sale), () => this.#follow(sale));
    await this.#guard('sending', () => this.#sendWaiting());
  }

  /** One chain that fails does not hold up the others. */
  async #guard(what: string, body: () => Promise<string | undefined>): Promise<void> {
    const { signal, log } = this.#options;
    let trouble: string | undefined;
    try {
      trouble = await body();
    } catch (error) {
      if (signal.aborted) return;
      // The chain moved between two pages: the next round reads it as it is then.
      if (error instanceof AppError && error.code === 'CURSOR_REORGED') return;
      trouble = `${what}: ${(error as Error).message}`;
    }
    if (trouble === undefined) this.#troubles.delete(what);
    else if (this.#troubles.get(what) !== trouble) {
      this.#troubles.set(what, trouble);
      log.warn({ what }, trouble);
    }
  }

  async #follow(sale: Sale): Promise<string | undefined> {
    const { network } = this.#options;
    const place = placeOf(sale);
    let asked = this.#asked.get(place);
    if (asked === undefined) {
      await network.checkChain(sale);
      // Also where it is indexed for somebody else, who may take that back.
      asked = { hash: await network.askForIndex(sale), refusal: undefined };
      this.#asked.set(place, asked);
    }
    for (let span = 0; span < SPANS_PER_ROUND; span++) {
      const next = (this.#scanned[place] ?? sale.startBlock - 1) + 1;
      const isFurther = await this.#readSpan(sale, place, next);
      if (isFurther === undefined) {
        asked.refusal ??= await network.findIndexRefusal(asked.hash);
        const what = `the core node does not index ${sale.price.symbol} on ${sale.network}`;
        return asked.refusal === undefined ? `${what} yet` : `${what}: ${asked.refusal}`;
      }
      if (!isFurther) return undefined;
    }
    return undefined;
  }

  /** @returns whether there may be more final blocks; undefined where the core node does not know the token */
  async #readSpan(sale: Sale, place: string, next: number): Promise<boolean | undefined> {
    const { network, store, purchases, now, signal, log } = this.#options;
    const list = await readTransfers(network.coreUrl, sale, next, { signal });
    if (list === undefined) return undefined;
    const quote = (transfer: (typeof list.final)[number]) => quoteTransfer(transfer, sale);
    const [final, fresh] = [list.final.map(quote), list.fresh.map(quote)];
    const moved = purchases.findMoved([...final, ...fresh]);
    const isNew = ({ id }: Purchase) => !moved.has(id);
    const bought = final.filter((purchase) => isNew(purchase) && !purchases.has(purchase.id));
    // Nothing comes of it: what anybody may send in any number is not kept.
    const kept = bought.filter((purchase) => !isTooLittle(purchase));
    if (kept.length > 0) await store.addPurchases(kept);
    for (const purchase of bought) purchases.add(purchase);
    purchases.setFresh(sale, { purchases: fresh.filter(isNew), toBlock: list.toBlock }, now());
    if (list.finalBlock < next) return false;
    for (const { id } of final.filter((purchase) => !isNew(purchase)))
      log.info({ place, id }, 'a transfer that was bought with before is in another block now');
    this.#scanned[place] = list.finalBlock;
    await store.writeProgress({ scanned: this.#scanned });
    return list.finalBlock === list.toBlock;
  }

  async #sendWaiting(): Promise<string | undefined> {
    const { purchases } = this.#options;
    let trouble: string | undefined;
    for (const purchase of purchases.listWaiting().slice(0, SENT_PER_ROUND)) {
      try {
        if (await this.#send(purchase)) continue;
        trouble ??= 'the core node stored a purchase without effect; it may not trust this service';
      } catch (error) {
        // One that is refused, as for a clock that is wrong, does not hold up the others.
        if (!(error instanceof AppError) || error.kind === 'unavailable') throw error;
        trouble ??= `a purchase was refused: ${error.message}`;
      }
      purchases.postpone(purchase.id);
    }
    return trouble;
  }

  /** @returns whether the core node credits it now */
  async #send(purchase: Purchase): Promise<boolean> {
    const { network, store, purchases, now } = this.#options;
    let itemHash = await network.findCredit(purchase);
    if (itemHash === undefined) {
      await network.sendPurchase(purchase);
      itemHash = await network.findCredit(purchase);
    }
    if (itemHash === undefined) return false;
    const settlement = { id: purchase.id, itemHash, settledAtMs: now() };
    await store.settle(settlement);
    purchases.settle(settlement);
    return true;
  }
}
