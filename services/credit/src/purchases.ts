import { isTooLittle, type Purchase } from './purchase.ts';
import type { Settlement } from './purchase-store.ts';

/** How far a purchase is, in the words of deployed clients. */
export type PurchaseStatus = 'CREATED' | 'CANCELLED' | 'PROCESSING' | 'COMPLETED' | 'FAILED';

export interface PurchaseRecord {
  readonly purchase: Purchase;
  readonly status: PurchaseStatus;
  /** The message that credits it; null before. */
  readonly itemHash: string | null;
  /** Milliseconds since 1970: when it got this status. */
  readonly updatedAtMs: number;
}

function addTo(lists: Map<string, string[]>, key: string, id: string): void {
  const known = lists.get(key);
  if (known) known.push(id);
  else lists.set(key, [id]);
}

type FreshOf = Pick<Purchase, 'network' | 'contract'>;

interface Fresh {
  readonly purchases: readonly Purchase[];
  readonly toBlock: number;
}

/** Purchases that a reorganisation took back are shown for a while. */
const CANCELLED_MAX = 1_000;
/** Of final transfers of too little to credit, the newest are shown. */
const TOO_LITTLE_MAX = 1_000;

/** Whether two are one transfer, wherever a chain has it. */
const isSameTransfer = (a: Purchase, b: Purchase): boolean =>
  a.network === b.network &&
  a.contract === b.contract &&
  a.address === b.address &&
  a.tokenAmount === b.tokenAmount;

/**
 * Everything that was bought, in memory: about 700 bytes for each purchase. What is not final, and what is worth less than one credit,
 * is known here alone: the one comes and goes with the chain, of the other there is a bounded number.
 */
export class Purchases {
  readonly #final = new Map<string, PurchaseRecord>();
  readonly #order: string[] = [];
  readonly #fresh = new Map<string, PurchaseRecord>();
  readonly #tooLittle = new Map<string, PurchaseRecord>();
  /** Ids of an address's final purchases, oldest first. */
  readonly #byAddress = new Map<string, string[]>();
  /** Hash of a transaction -> ids of the final purchases that it made. */
  readonly #byTransaction = new Map<string, string[]>();
  readonly #waiting = new Set<string>();

  constructor(purchases: readonly Purchase[], settlements: readonly Settlement[]) {
    for (const purchase of purchases) this.add(purchase);
    for (const settlement of settlements) this.settle(settlement);
  }

  get size(): number {
    return this.#final.size;
  }

  has(id: string): boolean {
    return this.#final.has(id);
  }

  /** A final purchase. */
  add(purchase: Purchase): void {
    const { id, address, refusal } = purchase;
    if (this.#final.has(id)) return;
    this.#fresh.delete(id);
    const status = refusal === null ? 'PROCESSING' : 'FAILED';
    const record: PurchaseRecord = {
      purchase,
      status,
      itemHash: null,
      updatedAtMs: purchase.timestamp * 1000,
    };
    if (isTooLittle(purchase)) {
      this.#addTooLittle(record);
      return;
    }
    this.#order.push(id);
    this.#final.set(id, record);
    if (refusal === null) this.#waiting.add(id);
    addTo(this.#byAddress, address, id);
    addTo(this.#byTransaction, purchase.transactionHash, id);
  }

  /**
   * Which of the transfers on a chain were bought with by another id: their transaction was in another block before, where its logs had
   * other numbers, as these are counted from the start of a block. A transaction is in one block at a time, so that a purchase of it
   * that is not on the chain is one of those that are.
   *
   * @param found of each transaction all that the chain has
   */
  findMoved(found: readonly Purchase[]): Set<string> {
    const present = new Set(found.map(({ id }) => id));
    const moved = new Set<string>();
    for (const purchase of found) {
      if (this.#final.has(purchase.id)) continue;
      const earlier = this.#byTransaction
        .get(purchase.transactionHash)
        ?.find((id) => !present.has(id) && isSameTransfer(this.#final.get(id)!.purchase, purchase));
      if (earlier === undefined) continue;
      // It stands for one of them.
      present.add(earlier);
      moved.add(purchase.id);
    }
    return moved;
  }

  #addTooLittle(record: PurchaseRecord): void {
    this.#tooLittle.set(record.purchase.id, record);
    const [oldest] = this.#tooLittle.keys();
    if (this.#tooLittle.size > TOO_LITTLE_MAX) this.#tooLittle.delete(oldest!);
  }

  settle({ id, itemHash, settledAtMs }: Settlement): void {
    const record = this.#final.get(id);
    if (!record) return;
    this.#waiting.delete(id);
    this.#final.set(id, { ...record, status: 'COMPLETED', itemHash, updatedAtMs: settledAtMs });
  }

  /** Final purchases that the core node does not show yet: the oldest first, and last what was postponed. */
  listWaiting(): Purchase[] {
    return [...this.#waiting].map((id) => this.#final.get(id)!.purchase);
  }

  /** Puts one that the core node does not credit behind the others that wait: however many there are, each has its turn. */
  postpone(id: string): void {
    if (this.#waiting.delete(id)) this.#waiting.add(id);
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** What one sale has in blocks that are not final: each time all of it, up to a block. Of what comes after it nothing is known. */
  setFresh({ network, contract }: FreshOf, { purchases, toBlock }: Fresh, nowMs: number): void {
    const ids = new Set(purchases.map(({ id }) => id));
    for (const [id, record] of this.#fresh) {
      const { purchase, status } = record;
      const isOfSale = purchase.network === network && purchase.contract === contract;
      const isGone = isOfSale && purchase.blockNumber <= toBlock && !ids.has(id);
      if (isGone && status === 'CREATED')
        this.#fresh.set(id, { ...record, status: 'CANCELLED', updatedAtMs: nowMs });
    }
    for (const purchase of purchases) {
      if (this.#final.has(purchase.id) || this.#fresh.get(purchase.id)?.status === 'CREATED') continue;
      this.#fresh.set(purchase.id, { purchase, status: 'CREATED', itemHash: null, updatedAtMs: nowMs });
    }
    this.#dropOldCancelled();
  }

  #dropOldCancelled(): void {
    const cancelled = [...this.#fresh].filter(([, { status }]) => status === 'CANCELLED');
    for (const [id] of cancelled.slice(0, Math.max(0, cancelled.length - CANCELLED_MAX)))
      this.#fresh.delete(id);
  }

  /**
   * A page, newest first: what is not final, then what was too little, then what was bought.
   *
   * @param address in lower case; everybody's without one
   */
  list(
    address: string | undefined,
    page: number,
    limit: number,
  ): { records: PurchaseRecord[]; total: number } {
    const passing = [...this.#tooLittle.values(), ...this.#fresh.values()]
      .filter(({ purchase }) => address === undefined || purchase.address === address)
      .reverse();
    const ids = address === undefined ? this.#order : (this.#byAddress.get(address) ?? []);
    const total = passing.length + ids.length;
    const from = (page - 1) * limit;
    const end = Math.max(0, ids.length - Math.max(0, from - passing.length));
    const begin = Math.max(0, end - Math.max(0, limit - Math.max(0, passing.length - from)));
    const final = ids.slice(begin, end).map((id) => this.#final.get(id)!);
    return { records: [...passing.slice(from, from + limit), ...final.reverse()], total };
  }
}
