import { type CallOptions, call } from '@skerry/client';
import { AppError } from '@skerry/protocol';
import { type EventView, INDEXER_API } from '@skerry/protocol/api/core/indexer';
import type { AnswerOf } from '@skerry/protocol/api/operation';
import type { Sale } from './sales.ts';

/** A transfer of a token to the receiver, as the core node's indexer tells of it. */
export interface Transfer {
  readonly transactionHash: string;
  readonly logIndex: number;
  readonly blockNumber: number;
  /** Unix seconds, of the block. */
  readonly timestamp: number;
  readonly from: string;
  /** Smallest units of the token. */
  readonly amount: bigint;
}

export interface TransferList {
  /** In final blocks from the asked one on, oldest first. */
  readonly final: readonly Transfer[];
  /** In blocks that a reorganisation may still take back. */
  readonly fresh: readonly Transfer[];
  /** Up to here every transfer is known and final. */
  readonly finalBlock: number;
  /** Up to here every transfer is in the list. What comes after was not looked at. */
  readonly toBlock: number;
}

const TRANSFER_ABI = ['event Transfer(address indexed from, address indexed to, uint256 value)'];
export const indexWish = ({ network, contract, startBlock }: Sale) => ({
  action: 'add',
  network,
  contract,
  abi: TRANSFER_ABI,
  start_block: startBlock,
});

type EventPage = AnswerOf<typeof INDEXER_API.listChainEvents>;

const PAGE_SIZE = 100;
/** Blocks of one look while much is behind: what is read at once stays small. */
const SPAN_BLOCKS = 20_000;
/** A look that finds more is made again of fewer blocks: transfers of nothing cost whoever makes them next to nothing. */
const PAGES_MAX = 100;
const FEWER = 8;
/** Of one block, which a chain's gas bounds. */
const BLOCK_PAGES_MAX = 10_000;

const digits = /^[0-9]{1,78}$/;

/**
 * Who pays whom follows from the order of the arguments: their names are those of whoever declared the event first. Transfers of
 * nothing are left out: of most tokens anybody may make them in anybody's name.
 */
function transferOf(event: EventView, receiver: string): Transfer[] {
  const [from, to, value] = event.event_parameters.map((name) => event.args[name]);
  const isTransfer =
    typeof from === 'string' && to === receiver && typeof value === 'string' && digits.test(value);
  if (!isTransfer || BigInt(value) === 0n) return [];
  return [
    {
      transactionHash: event.transaction_hash,
      logIndex: event.log_index,
      blockNumber: event.block_number,
      timestamp: event.timestamp,
      from,
      amount: BigInt(value),
    },
  ];
}

/**
 * Reads the transfers of a sale from a block on. The core node follows reorganisations; every page of one look is of one
 * chain, else the look fails with CURSOR_REORGED and is made again. Throws UPSTREAM_UNAVAILABLE while the index is halted.
 *
 * @returns undefined while the core node does not index the token, or not yet from that block on
 */
export async function readTransfers(
  coreUrl: string,
  sale: Sale,
  fromBlock: number,
  options: CallOptions,
): Promise<TransferList | undefined> {
  for (let blocks = SPAN_BLOCKS; ; blocks = Math.ceil(blocks / FEWER)) {
    try {
      return await readSpan(coreUrl, sale, { fromBlock, blocks }, options);
    } catch (error) {
      const isTooMuch = error instanceof AppError && error.code === 'LIST_TOO_COSTLY';
      if (!isTooMuch || blocks === 1) throw error;
    }
  }
}

interface Span {
  readonly fromBlock: number;
  readonly blocks: number;
}

async function readSpan(
  coreUrl: string,
  sale: Sale,
  { fromBlock, blocks }: Span,
  options: CallOptions,
): Promise<TransferList | undefined> {
  const toBlock = fromBlock + blocks - 1;
  const pagesMax = blocks > 1 ? PAGES_MAX : BLOCK_PAGES_MAX;
  const query = {
    contract: sale.contract,
    event_name: 'Transfer(address,address,uint256)',
    args: JSON.stringify({ to: sale.receiver }),
    from_block: fromBlock,
    to_block: toBlock,
    limit: PAGE_SIZE,
  };
  let cursor: string | undefined;
  const transfers: Transfer[] = [];
  let known: Known | undefined;
  for (let page = 1; ; page++) {
    const input = { params: { network: sale.network }, query: { ...query, cursor } };
    const answer: EventPage = await call(coreUrl, INDEXER_API.listChainEvents, input, options);
    if (answer.state === 'halted')
      throw new AppError(
        'UPSTREAM_UNAVAILABLE',
        `the core node's index of ${sale.network} has halted: what it has read may be of another chain`,
      );
    known ??= knownOf(answer, fromBlock, toBlock);
    if (known === undefined) return undefined;
    transfers.push(...answer.events.flatMap((event) => transferOf(event, sale.receiver)));
    if (answer.cursor === null) break;
    if (page === pagesMax)
      throw new AppError('LIST_TOO_COSTLY', `more than ${page * PAGE_SIZE} transfers in ${blocks} blocks`);
    cursor = answer.cursor;
  }
  const { finalBlock } = known;
  return {
    final: transfers.filter(({ blockNumber }) => blockNumber <= finalBlock).reverse(),
    fresh: transfers.filter(({ blockNumber }) => blockNumber > finalBlock).reverse(),
    ...known,
  };
}

type Known = Pick<TransferList, 'finalBlock' | 'toBlock'>;

/** The first page's word counts: what is final stays so. Below `fromBlock` where nothing of it is final yet, or known. */
function knownOf({ finalized, coverage }: EventPage, fromBlock: number, toBlock: number): Known | undefined {
  const covered = coverage.find(({ kind }) => kind === 'events');
  if (!covered || covered.from_block > fromBlock) return undefined;
  const known = Math.max(Math.min(covered.to_block ?? -1, toBlock), fromBlock - 1);
  return { finalBlock: Math.max(Math.min(finalized ?? -1, known), fromBlock - 1), toBlock: known };
}
