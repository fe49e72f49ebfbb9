import {
  AppError,
  bytesToHex,
  cidOfFile,
  fieldsOf,
  isFileCid,
  keccak256,
  type VerifiedMessage,
} from '@skerry/protocol';
import { parseJson as parseAnswer } from '../call.ts';
import { askForFile } from '../files/raw-file.ts';
import { readBytes, readText } from '../reads/read-body.ts';
import { request } from '../request.ts';

/** What a core node says: a transaction, of a block, that emitted an archive with the message. */
export interface Confirmation {
  readonly height: number;
  /** Of the transaction. */
  readonly hash: string;
}

/** What a chain says of a confirmation, by the word of one endpoint of it. */
export interface ChainedConfirmation {
  readonly blockHash: string;
  /** Blocks above it. */
  readonly depth: number;
  /** The contract, and who had it emit. */
  readonly contract: string;
  readonly emitter: string;
  /** The archive; null where the event has the messages itself. */
  readonly cid: string | null;
  /** Whether the bytes that hold the message have this CID: of an archive under a CID of version 1 that is not checked here. */
  readonly isArchiveProven: boolean;
}

const SYNC_EVENT = `0x${bytesToHex(keccak256(new TextEncoder().encode('SyncEvent(uint256,address,string)')))}`;
const WORD_DIGITS = 64;
const CALLDATA_BYTES_MAX = 128 * 1024;
const ARCHIVE_BYTES_MAX = 64 * 1024 * 1024;
const TIMEOUT_MS = 60_000;

const wrong = (what: string) => new AppError('HASH_MISMATCH', what);
const textOf = (value: unknown, what: string): string => {
  if (typeof value === 'string') return value;
  throw new AppError('UNEXPECTED_ANSWER', `the endpoint gives no ${what}`);
};

function parseJson(text: string, what: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw wrong(`${what} is not JSON`);
  }
}

async function askChain(url: string, method: string, ...params: unknown[]): Promise<unknown> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
  const answer = parseAnswer(await readText(await request(url, { method: 'POST', body })), url);
  const { result, error } = fieldsOf(answer);
  if (error === undefined) return result;
  const { message } = fieldsOf(error);
  throw new AppError(
    'UPSTREAM_UNAVAILABLE',
    `the endpoint refuses ${method}: ${String(message).slice(0, 200)}`,
  );
}

interface Emitted {
  readonly contract: string;
  readonly emitter: string;
  readonly text: string;
}

/** Reads a log of `SyncEvent(uint256 timestamp, address addr, string message)`; undefined for another one. */
function readLog(log: unknown): Emitted | undefined {
  const { address, topics, data } = fieldsOf(log);
  const isEvent = Array.isArray(topics) && topics[0] === SYNC_EVENT;
  if (!isEvent || typeof data !== 'string' || typeof address !== 'string') return undefined;
  const digits = data.slice(2);
  const wordAt = (at: number) => digits.slice(at * WORD_DIGITS, (at + 1) * WORD_DIGITS);
  const numberAt = (at: number) => Number.parseInt(wordAt(at), 16);
  const bytes = numberAt(3);
  // The text begins after its offset and its length: the event has no other form.
  if (numberAt(2) !== 3 * 32 || !(bytes <= CALLDATA_BYTES_MAX)) return undefined;
  const hex = digits.slice(4 * WORD_DIGITS, 4 * WORD_DIGITS + bytes * 2);
  if (!/^([0-9a-f]{2})*$/i.test(hex) || hex.length !== bytes * 2) return undefined;
  const text = new TextDecoder().decode(
    Uint8Array.from(hex.match(/../g) ?? [], (two) => Number.parseInt(two, 16)),
  );
  return { contract: address, emitter: `0x${wordAt(1).slice(24)}`, text };
}

/** Whether an entry of an archive is the message. */
function isMessage(entry: unknown, { form, itemHash, sourceText, signature }: VerifiedMessage): boolean {
  const { signed_text: text, signature: signed, item_hash: hash, upload } = fieldsOf(entry ?? {});
  if (form === 'envelope') return text === sourceText && signed === signature;
  if (form === 'upload') return fieldsOf(upload ?? {}).signature === signature;
  return hash === itemHash && signed === signature;
}

function holds(archive: unknown, message: VerifiedMessage): boolean {
  const { content } = fieldsOf(archive);
  const { messages } = fieldsOf(content);
  return Array.isArray(messages) && messages.some((entry) => isMessage(entry, message));
}

async function readArchive(coreUrl: string, cid: string): Promise<Uint8Array> {
  const response = await askForFile(coreUrl, cid, { timeoutMs: TIMEOUT_MS });
  return readBytes(response, ARCHIVE_BYTES_MAX);
}

async function findEvent(rpcUrl: string, { height, hash }: Confirmation) {
  const receipt = await askChain(rpcUrl, 'eth_getTransactionReceipt', hash);
  if (receipt === null) throw wrong(`the chain has no transaction ${hash}`);
  const { status, blockNumber, blockHash, logs } = fieldsOf(receipt);
  if (Number(blockNumber) !== height) throw wrong(`the transaction is in block ${Number(blockNumber)}`);
  if (status !== '0x1') throw wrong('the transaction failed on the chain');
  const events = Array.isArray(logs) ? logs.flatMap((log) => readLog(log) ?? []) : [];
  const [event] = events;
  if (!event) throw wrong('the transaction emitted no archive');
  return { ...event, blockHash: textOf(blockHash, 'hash of the block') };
}

/**
 * Checks against a chain that a message is confirmed: the transaction is in the block, it emitted an archive, and the message is in that
 * archive. That the endpoint tells the truth of its chain this does not show, nor that it is the chain of the network. Throws
 * AppError HASH_MISMATCH where it is not so, and what `request` throws.
 * @param rpcUrl JSON-RPC of a node of the chain
 */
export async function proveConfirmation(
  { coreUrl, rpcUrl }: { readonly coreUrl: string; readonly rpcUrl: string },
  confirmation: Confirmation,
  message: VerifiedMessage,
): Promise<ChainedConfirmation> {
  const { text, ...event } = await findEvent(rpcUrl, confirmation);
  const head = Number(textOf(await askChain(rpcUrl, 'eth_blockNumber'), 'number of its newest block'));
  const depth = head - confirmation.height;
  const said = parseJson(text, 'what the transaction emitted');
  const { protocol, content } = fieldsOf(said);
  if (protocol !== 'aleph-offchain') {
    if (!holds(said, message)) throw wrong('the event does not have the message');
    return { ...event, depth, cid: null, isArchiveProven: true };
  }
  const cid = textOf(content, 'archive');
  const bytes = await readArchive(coreUrl, cid);
  const isComputable = isFileCid(cid);
  const computed = isComputable ? cidOfFile(bytes) : undefined;
  if (isComputable && computed !== cid)
    throw wrong(`what the core node gives as the archive is ${computed ?? 'empty'}`);
  if (!holds(parseJson(new TextDecoder().decode(bytes), `the archive ${cid}`), message))
    throw wrong(`the message is not in the archive ${cid}`);
  return { ...event, depth, cid, isArchiveProven: isComputable };
}
