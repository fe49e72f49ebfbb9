import type { EvmTransaction, Wallet } from '@skerry/client';
import type { Call, RpcPool } from '@skerry/indexer';
import { asFields, fetchHead, parseQuantity, RpcError } from '@skerry/indexer';
import { AppError } from '@skerry/protocol';
import type { Seen } from './place.ts';

const GWEI = 1_000_000_000n;
/** Where a node does not say what is usual. */
const USUAL_TIP = GWEI;
/** `doEmit(string)`. */
const SELECTOR = '58666c04';
const WORD_BYTES = 32;

/** The input of a call of `doEmit` (Solidity ABI specification, "Argument Encoding"). */
export function emitInput(content: string): string {
  const bytes = Buffer.from(content);
  const word = (value: number) => value.toString(16).padStart(2 * WORD_BYTES, '0');
  const padded = Math.ceil(bytes.length / WORD_BYTES) * WORD_BYTES;
  return `0x${SELECTOR}${word(WORD_BYTES)}${word(bytes.length)}${bytes.toString('hex').padEnd(2 * padded, '0')}`;
}

export interface Prepared {
  readonly raw: string;
  readonly hash: string;
  readonly nonce: number;
  /** Wei for a unit of gas. */
  readonly maxFee: bigint;
}

export interface EmitterOptions {
  readonly rpc: RpcPool;
  readonly wallet: Wallet;
  readonly chainId: number;
  readonly contract: string;
  readonly maxFeeGwei: number;
}

const bigOf = (value: unknown): bigint => {
  if (typeof value !== 'string' || !/^0x[0-9a-f]{1,64}$/i.test(value))
    throw new RpcError({ kind: 'malformed', reason: 'a quantity is none' });
  return BigInt(value);
};

/** Puts texts on the chain by transactions of one key. Throws UPSTREAM_UNAVAILABLE with what the endpoints said. */
export class Emitter {
  readonly #options: EmitterOptions;

  constructor(options: EmitterOptions) {
    this.#options = options;
  }

  /** What became of a transaction, where there is one, and which nonce the chain takes next. */
  async look(hash: string | null): Promise<Seen> {
    const { address } = this.#options.wallet;
    const [count, receipt] = await this.#ask([
      { method: 'eth_getTransactionCount', params: [address, 'latest'] },
      ...(hash === null ? [] : [{ method: 'eth_getTransactionReceipt', params: [hash] }]),
    ]);
    return {
      receipt:
        receipt === null || receipt === undefined
          ? 'none'
          : asFields(receipt, 'a receipt').status === '0x1'
            ? 'succeeded'
            : 'reverted',
      count: parseQuantity(count, 'a number of transactions'),
    };
  }

  /**
   * A signed transaction that emits the text. Throws where gas is dearer now than the settings allow, too.
   *
   * @param minimumFee wei: to take the place of one before it. Beyond what the settings allow it is that: a transaction that
   *   the chain forgot is there again with it, and one that still waits stays.
   */
  async prepare(
    content: string,
    { minimumFee, nonce }: { readonly minimumFee: bigint; readonly nonce: number },
  ): Promise<Prepared> {
    const { wallet, chainId, contract, maxFeeGwei } = this.#options;
    const data = emitInput(content);
    const [block, tip, estimate] = await this.#ask([
      { method: 'eth_getBlockByNumber', params: ['latest', false] },
      { method: 'eth_maxPriorityFeePerGas', params: [] },
      { method: 'eth_estimateGas', params: [{ from: wallet.address, to: contract, data }] },
    ]);
    const base = bigOf(asFields(block, 'a block').baseFeePerGas ?? '0x0');
    const priority = tip === undefined ? USUAL_TIP : bigOf(tip);
    const ceiling = BigInt(maxFeeGwei) * GWEI;
    const wanted = 2n * base + priority > minimumFee ? 2n * base + priority : minimumFee;
    const maxFee = wanted < ceiling ? wanted : ceiling;
    if (base + priority > ceiling)
      throw new AppError(
        'UPSTREAM_UNAVAILABLE',
        `gas costs ${base + priority} wei, and max_fee_gwei allows ${ceiling}: archives wait`,
      );
    const transaction: EvmTransaction = {
      chainId,
      nonce,
      maxFeePerGas: maxFee,
      // A replacement has to raise both.
      maxPriorityFeePerGas: minimumFee > 0n ? maxFee : priority < maxFee ? priority : maxFee,
      gas: (bigOf(estimate) * 12n) / 10n,
      to: contract,
      value: 0n,
      data,
    };
    return { ...wallet.sign(transaction), nonce: transaction.nonce, maxFee };
  }

  async send(raw: string): Promise<void> {
    await this.#ask(
      [{ method: 'eth_sendRawTransaction', params: [raw] }],
      /already known|nonce too low|imported|replace/i,
    );
  }

  /** Each call's result. @param harmless refusals that are none */
  async #ask(calls: readonly Call[], harmless?: RegExp): Promise<unknown[]> {
    const { rpc } = this.#options;
    let refusal: RpcError | undefined;
    const results = await rpc
      .run(async (endpoint) => {
        if (endpoint.head < 0) await fetchHead(endpoint, false);
        return Promise.all(
          calls.map(async (call) => {
            try {
              return (await endpoint.ask([call]))[0];
            } catch (error) {
              if (!(error instanceof RpcError)) throw error;
              const { kind } = error.failure;
              // No endpoint would say otherwise.
              if (kind === 'refused' || kind === 'range_too_large') {
                if (!harmless?.test(error.message)) refusal = error;
                return undefined;
              }
              if (kind === 'unsupported') return undefined;
              throw error;
            }
          }),
        );
      })
      .catch((error: unknown) => {
        throw error instanceof RpcError ? new AppError('UPSTREAM_UNAVAILABLE', error.message) : error;
      });
    if (refusal) throw new AppError('UPSTREAM_UNAVAILABLE', `the chain refused: ${refusal.message}`);
    return results;
  }
}
