import { RpcError } from '../rpc/failures.ts';

/** Strict reading of what endpoints send: hexadecimal as the execution API specification has it. Throws RpcError `malformed`. */

const HASH = /^0x[0-9a-f]{64}$/;
const ADDRESS = /^0x[0-9a-f]{40}$/;
const DATA = /^0x(?:[0-9a-f]{2})*$/;
const BLOOM = /^0x[0-9a-f]{512}$/;
const QUANTITY = /^0x[0-9a-f]{1,64}$/;

export interface Header {
  readonly number: number;
  readonly hash: string;
  readonly parentHash: string;
  /** Unix seconds. */
  readonly timestamp: number;
  /** 2048 bits (Yellow Paper, section 4.3.1). */
  readonly bloom: string;
}

export interface Log {
  readonly address: string;
  readonly topics: readonly string[];
  readonly data: string;
  readonly blockNumber: number;
  readonly blockHash: string;
  readonly logIndex: number;
  readonly transactionHash: string;
  /** Newer nodes say it with the log, and some of them zero; it saves a request for the block. */
  readonly timestamp: number | undefined;
}

export interface Transaction {
  readonly hash: string;
  readonly index: number;
  readonly from: string;
  readonly to: string | null;
  /** Wei, in decimal digits. */
  readonly value: string;
  readonly gas: number;
  readonly gasPrice: string;
}

const malformed = (what: string): RpcError => new RpcError({ kind: 'malformed', reason: what });

type Fields = Readonly<Record<string, unknown>>;

export function asFields(value: unknown, what: string): Fields {
  if (typeof value !== 'object' || value === null) throw malformed(`${what} is not an object`);
  return value as Fields;
}

function text(value: unknown, form: RegExp, what: string): string {
  if (typeof value !== 'string') throw malformed(`${what} is not text`);
  if (form.test(value)) return value;
  const lower = value.toLowerCase();
  if (!form.test(lower)) throw malformed(`${what} has the wrong form`);
  return lower;
}

export function parseQuantity(value: unknown, what: string): number {
  const number = typeof value === 'string' && QUANTITY.test(value) ? Number(value) : Number.NaN;
  if (!Number.isSafeInteger(number)) throw malformed(`${what} is not a quantity`);
  return number;
}

const parseBigQuantity = (value: unknown, what: string): string =>
  BigInt(text(value, QUANTITY, what)).toString();

export function parseHeader(value: unknown): Header {
  const { number, hash, parentHash, timestamp, logsBloom } = asFields(value, 'a block');
  return {
    number: parseQuantity(number, 'a block number'),
    hash: text(hash, HASH, 'a block hash'),
    parentHash: text(parentHash, HASH, 'a parent hash'),
    timestamp: parseQuantity(timestamp, 'a timestamp'),
    bloom: text(logsBloom, BLOOM, 'a bloom'),
  };
}

const TOPICS_MAX = 4;

/** Logs come sorted: most fields are those of the log before, and a comparison is cheaper than a look at every digit. */
function remembering<T>(parse: (value: unknown) => T): (value: unknown) => T {
  let last: { readonly value: unknown; readonly result: T } | undefined;
  return (value) => {
    if (last === undefined || last.value !== value) last = { value, result: parse(value) };
    return last.result;
  };
}

const parseLogAddress = remembering((value) => text(value, ADDRESS, 'an address'));
const parseFirstTopic = remembering((value) => text(value, HASH, 'a topic'));
const parseBlockNumber = remembering((value) => parseQuantity(value, 'a block number'));
const parseBlockHash = remembering((value) => text(value, HASH, 'a block hash'));
const parseTransactionHash = remembering((value) => text(value, HASH, 'a transaction hash'));
const parseBlockTimestamp = remembering((value) => parseQuantity(value, 'a timestamp'));

function parseLog(value: unknown): Log {
  const fields = asFields(value, 'a log');
  const { topics, blockTimestamp } = fields;
  if (!Array.isArray(topics) || topics.length > TOPICS_MAX)
    throw malformed('topics are not a list of up to four');
  if (fields.removed === true) throw malformed('a log that was removed');
  return {
    address: parseLogAddress(fields.address),
    topics: topics.map((topic, index) =>
      index === 0 ? parseFirstTopic(topic) : text(topic, HASH, 'a topic'),
    ),
    data: text(fields.data, DATA, 'data'),
    blockNumber: parseBlockNumber(fields.blockNumber),
    blockHash: parseBlockHash(fields.blockHash),
    logIndex: parseQuantity(fields.logIndex, 'a log index'),
    transactionHash: parseTransactionHash(fields.transactionHash),
    timestamp: (typeof blockTimestamp === 'string' && parseBlockTimestamp(blockTimestamp)) || undefined,
  };
}

export function parseLogs(value: unknown): Log[] {
  if (!Array.isArray(value)) throw malformed('logs are not a list');
  return value.map(parseLog);
}

function parseTransaction(value: unknown): Transaction {
  const fields = asFields(value, 'a transaction');
  return {
    hash: text(fields.hash, HASH, 'a transaction hash'),
    index: parseQuantity(fields.transactionIndex, 'a transaction index'),
    from: text(fields.from, ADDRESS, 'a sender'),
    to: fields.to === null || fields.to === undefined ? null : text(fields.to, ADDRESS, 'a receiver'),
    value: parseBigQuantity(fields.value, 'a value'),
    gas: parseQuantity(fields.gas, 'gas'),
    // What was paid; before EIP-1559, and in blocks, nodes give it under this name for every kind of transaction.
    gasPrice: parseBigQuantity(fields.gasPrice ?? fields.maxFeePerGas ?? '0x0', 'a gas price'),
  };
}

/** The transactions of a block that was asked for in full. */
export function parseTransactions(block: unknown): Transaction[] {
  const { transactions } = asFields(block, 'a block');
  if (!Array.isArray(transactions)) throw malformed('transactions are not a list');
  return transactions.map(parseTransaction);
}

export const hexNumber = (number: number): string => `0x${number.toString(16)}`;
