import { type MessageDraft, type SignedBody, type Signer, signMessage } from '@skerry/client';
import { CREDIT_CHANNEL, CREDIT_POST, sha256Hex, tokensToCredits, transferKey } from '@skerry/protocol';
import type { Sale } from './sales.ts';
import type { Transfer } from './transfers.ts';

/** A transfer with what it buys, fixed when the transfer is final. What is kept of it is JSON. */
export interface Purchase {
  /** Names the transfer on its chain: no other purchase has it. */
  readonly id: string;
  readonly network: string;
  readonly chain: string;
  readonly chainId: number;
  readonly contract: string;
  readonly symbol: string;
  /** Who paid, and whose the credits are. */
  readonly address: string;
  /** Smallest units of the token, decimal digits. */
  readonly tokenAmount: string;
  readonly decimals: number;
  /** Whole credits, bonus included. */
  readonly credits: number;
  readonly bonus: number;
  readonly creditsPerToken: number;
  readonly transactionHash: string;
  readonly logIndex: number;
  readonly blockNumber: number;
  /** Unix seconds, of the block. */
  readonly timestamp: number;
  /** Why nothing is credited, where nothing is. */
  readonly refusal: string | null;
}

const NOBODY = `0x${'0'.repeat(40)}`;
const TOO_LITTLE = 'it is worth less than one credit';
const CREDITS_MAX = BigInt(Number.MAX_SAFE_INTEGER);

function refusalOf(transfer: Transfer, sale: Sale, credits: bigint): string | null {
  if (credits < 1n) return TOO_LITTLE;
  if (transfer.from === NOBODY) return 'the tokens were minted, not sent, so there is nobody to credit';
  if (transfer.from === sale.receiver) return 'the receiver sent the tokens to itself';
  return credits > CREDITS_MAX ? 'it is worth more credits than one purchase can contain' : null;
}

/** Nobody is credited for it, and it costs whoever sends it next to nothing. */
export const isTooLittle = ({ refusal }: Pick<Purchase, 'refusal'>): boolean => refusal === TOO_LITTLE;

/** What a transfer buys at the sale's price. */
export function quoteTransfer(transfer: Transfer, sale: Sale): Purchase {
  const { price, network, chain, chainId, contract } = sale;
  const quote = tokensToCredits(transfer.amount, price);
  const refusal = refusalOf(transfer, sale, quote.credits);
  return {
    id: transferKey(chainId, transfer.transactionHash, transfer.logIndex),
    network,
    chain,
    chainId,
    contract,
    symbol: price.symbol,
    address: transfer.from,
    tokenAmount: String(transfer.amount),
    decimals: price.decimals,
    credits: refusal === null ? Number(quote.credits) : 0,
    bonus: refusal === null ? Number(quote.bonus) : 0,
    creditsPerToken: Number(price.creditsPerToken),
    transactionHash: transfer.transactionHash,
    logIndex: transfer.logIndex,
    blockNumber: transfer.blockNumber,
    timestamp: transfer.timestamp,
    refusal,
  };
}

const NONCE_CHARS = 32;

/**
 * The message that credits a purchase: a pure function of it, to the last byte, dated as its block. Sent again after a
 * crash it is the same message.
 */
export function signPurchase(purchase: Purchase, signer: Signer): SignedBody {
  const { chain, chainId, contract, symbol, id } = purchase;
  const line = {
    address: purchase.address,
    amount: purchase.credits,
    bonus_amount: purchase.bonus,
    price: String(purchase.creditsPerToken),
    token_amount: purchase.tokenAmount,
    tx_hash: purchase.transactionHash,
    log_index: purchase.logIndex,
    provider: 'WALLET',
    payment_method: 'token_transfer',
  };
  const distribution = { token: symbol, chain, chain_id: chainId, contract, credits: [line] };
  const draft: MessageDraft = {
    type: 'POST',
    channel: CREDIT_CHANNEL,
    content: { type: CREDIT_POST.distribution, content: { distribution } },
    timestamp: purchase.timestamp,
    nonce: sha256Hex(id).slice(0, NONCE_CHARS),
  };
  return signMessage(draft, signer);
}
