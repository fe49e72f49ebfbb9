import type { ContractEvent, IndexedChain } from '@skerry/indexer';
import { AppError, sha256Hex } from '@skerry/protocol';
import type { Emitter, Prepared } from '../../chains/anchoring/emitter.ts';
import type { ChainReader } from '../../chains/anchoring/reader.ts';
import type { SeededDice } from './dice.ts';

/** A block that lies so deep never changes. */
export const FINAL_DEPTH = 12;
const BLOCK_TRANSACTIONS = 3;
/** A chain that is never read anew. */
const READING = '00000000-0000-4000-8000-000000000001';
const GWEI = 1_000_000_000n;
/** Whose archives the nodes read. */
export const EMITTER = `0x${'e1'.repeat(20)}`;
export const STRANGER = `0x${'57'.repeat(20)}`;

interface Transaction {
  readonly hash: string;
  readonly from: string;
  readonly nonce: number;
  readonly content: string;
  /** Wei for a unit of gas. */
  readonly maxFee: bigint;
}
export interface Block {
  readonly hash: string;
  /** Unix seconds. */
  readonly timestamp: number;
  readonly transactions: readonly Transaction[];
}

/** A chain with one contract: transactions wait, come into blocks, and lose their blocks again. */
export class VirtualChain {
  readonly #dice: SeededDice;
  #blocks: readonly Block[];
  readonly #now: () => number;
  #waiting: Transaction[] = [];
  #made = 0;
  reorgs = 0;

  constructor(dice: SeededDice, now: () => number) {
    this.#dice = dice;
    this.#now = now;
    this.#blocks = [{ hash: sha256Hex('genesis'), timestamp: this.#seconds, transactions: [] }];
  }

  get blocks(): readonly Block[] {
    return this.#blocks;
  }

  get #seconds(): number {
    return Math.floor(this.#now() / 1000);
  }

  get height(): number {
    return this.#blocks.length - 1;
  }

  /** Transactions of one sender that are in blocks: the next one's nonce. */
  countOf(from: string): number {
    return this.#blocks.flatMap(({ transactions }) => transactions).filter((one) => one.from === from).length;
  }

  find(hash: string): boolean {
    return this.#blocks.some(({ transactions }) => transactions.some((one) => one.hash === hash));
  }

  /** Only a dearer one takes the place of another; one whose nonce is used up is none. */
  put(transaction: Transaction): void {
    const isSamePlace = ({ from, nonce }: Transaction) =>
      from === transaction.from && nonce === transaction.nonce;
    const before = this.#waiting.find(isSamePlace);
    if (before && before.maxFee >= transaction.maxFee) return;
    if (transaction.nonce < this.countOf(transaction.from)) return;
    this.#waiting = [...this.#waiting.filter((one) => one !== before), transaction];
  }

  /** Who waits for blocks is forgotten now and then, as when the endpoint is started anew. */
  forgetSome(): void {
    this.#waiting = this.#waiting.filter(() => this.#dice.chance(0.5));
  }

  emit(from: string, content: string): void {
    const nonce = this.countOf(from) + this.#waiting.filter((one) => one.from === from).length;
    const hash = `0x${sha256Hex(`${from} ${nonce} ${content}`)}`;
    this.put({ hash, from, nonce, content, maxFee: GWEI });
  }

  mine(): void {
    const transactions: Transaction[] = [];
    const next = new Map<string, number>();
    for (const one of this.#waiting.toSorted((a, b) => a.nonce - b.nonce)) {
      const nonce = next.get(one.from) ?? this.countOf(one.from);
      if (one.nonce !== nonce || transactions.length >= BLOCK_TRANSACTIONS) continue;
      transactions.push(one);
      next.set(one.from, nonce + 1);
    }
    this.#waiting = this.#waiting.filter(
      (one) => !transactions.includes(one) && one.nonce >= (next.get(one.from) ?? this.countOf(one.from)),
    );
    const parent = this.#blocks.at(-1)!.hash;
    const names = transactions.map(({ hash }) => hash).join();
    const hash = sha256Hex(`${parent} ${this.#made++} ${names}`);
    this.#blocks = [...this.#blocks, { hash, timestamp: this.#seconds, transactions }];
  }

  /** The last blocks are replaced by as many others and one more; a transaction may be lost with its block. */
  reorg(): void {
    const depth = Math.min(1 + this.#dice.below(FINAL_DEPTH - 1), this.height);
    const gone = this.#blocks.slice(this.#blocks.length - depth);
    this.#blocks = this.#blocks.slice(0, this.#blocks.length - depth);
    for (const one of gone.flatMap(({ transactions }) => transactions))
      if (!this.#dice.chance(0.2)) this.put(one);
    for (let block = 0; block <= depth; block++) {
      // Whoever mines now may not know of what waits.
      if (this.#dice.chance(0.5)) this.mine();
      else this.#mineEmpty();
    }
    this.reorgs++;
  }

  #mineEmpty(): void {
    const hash = sha256Hex(`${this.#blocks.at(-1)!.hash} ${this.#made++}`);
    this.#blocks = [...this.#blocks, { hash, timestamp: this.#seconds, transactions: [] }];
  }
}

function eventsOf(blocks: readonly Block[], fromBlock: number): ContractEvent[] {
  return blocks.slice(fromBlock).flatMap(({ timestamp, transactions }, at) =>
    transactions.map(({ hash, from, content }, logIndex) => ({
      timestamp,
      blockNumber: fromBlock + at,
      logIndex,
      transactionHash: hash,
      name: 'SyncEvent',
      args: { addr: from, message: content },
    })),
  );
}

/** What one node has read of the chain: as of when it last looked. It outlives the node's crashes, as its index does. */
export class ChainView implements ChainReader {
  readonly #chain: VirtualChain;
  #blocks: readonly Block[] = [];
  #settledTo = -1;
  #looks = 0;

  constructor(chain: VirtualChain) {
    this.#chain = chain;
  }

  look(): void {
    this.#looks++;
    this.#blocks = this.#chain.blocks;
    this.#settledTo = Math.max(this.#settledTo, this.#chain.height - FINAL_DEPTH);
  }

  async findChain(): Promise<IndexedChain> {
    return { genesisHash: this.#blocks[0]?.hash ?? null, reading: READING };
  }

  async readEvents(fromBlock: number, limit: number) {
    const readTo = this.#blocks.length - 1;
    if (readTo < 0) return undefined;
    const all = eventsOf(this.#blocks, fromBlock);
    const last = all[limit]?.blockNumber;
    const isCut = last !== undefined && last < readTo;
    const events = isCut ? all.filter(({ blockNumber }) => blockNumber <= last) : all;
    return {
      events,
      readTo: isCut ? last : readTo,
      coveredTo: readTo,
      isAtTip: true,
      settledTo: Math.min(this.#settledTo, isCut ? last : readTo),
      isCut,
      head: readTo,
      requests: this.#looks,
      genesisHash: this.#blocks[0]!.hash,
      reading: READING,
    };
  }
}

/** How a node puts texts on the chain. @param cross throws where the chain cannot be reached */
export function createVirtualEmitter(
  chain: VirtualChain,
  ceiling: bigint,
  cross: () => void,
): Pick<Emitter, 'look' | 'prepare' | 'send'> {
  return {
    async look(hash) {
      cross();
      const receipt = hash !== null && chain.find(hash) ? 'succeeded' : 'none';
      return { receipt, count: chain.countOf(EMITTER) };
    },
    async prepare(content, { minimumFee, nonce }): Promise<Prepared> {
      cross();
      const wanted = minimumFee > GWEI ? minimumFee : GWEI;
      const maxFee = wanted < ceiling ? wanted : ceiling;
      const hash = `0x${sha256Hex(`${EMITTER} ${nonce} ${maxFee} ${content}`)}`;
      const raw = JSON.stringify({ hash, from: EMITTER, nonce, content, maxFee: maxFee.toString() });
      return { raw, hash, nonce, maxFee };
    },
    async send(raw) {
      cross();
      const sent = JSON.parse(raw) as Omit<Transaction, 'maxFee'> & { maxFee: string };
      chain.put({ ...sent, maxFee: BigInt(sent.maxFee) });
    },
  };
}

export const unreachable = (what: string) => new AppError('UPSTREAM_UNAVAILABLE', `${what} does not answer`);
