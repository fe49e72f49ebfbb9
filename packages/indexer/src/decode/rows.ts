import { createHash } from 'node:crypto';
import type { Claims } from '../chain/claims.ts';
import type { Header, Log, Transaction } from '../chain/shape.ts';

/** How many rows of one event of one contract lie in a stretch of blocks. Transactions have contract 0, event 0. */
export interface SpanDraft {
  readonly contractId: number;
  readonly eventId: number;
  fromBlock: number;
  toBlock: number;
  fromTimestamp: number;
  toTimestamp: number;
  rows: number;
}

/** Rows as COPY's text format has them (PostgreSQL manual, "COPY", "Text Format"). */
export interface RowBatch {
  /** In memory of their own, so that a thread can hand them over. */
  readonly chunks: readonly Uint8Array[];
  readonly rows: number;
  readonly spans: readonly SpanDraft[];
}

export const EMPTY_BATCH: RowBatch = { chunks: [], rows: 0, spans: [] };

export const joinBatches = (batches: readonly RowBatch[]): RowBatch => ({
  chunks: batches.flatMap(({ chunks }) => chunks),
  rows: batches.reduce((sum, { rows }) => sum + rows, 0),
  spans: batches.flatMap(({ spans }) => spans),
});

/** The same of the same rows, wherever one chunk ends and the next begins. */
export function digestOfBatch({ chunks }: RowBatch): string {
  const hash = createHash('sha256');
  for (const chunk of chunks) hash.update(chunk);
  return hash.digest('hex');
}

/** Lines of one chunk: a few hundred kilobytes, unless they are long. */
const CHUNK_LINES = 1_024;
/** Characters from which on a chunk takes no further line: a string, and memory in one piece, has a largest length. */
const CHUNK_CHARS = 4 * 1024 * 1024;
const utf8 = new TextEncoder();

function encodeLines(lines: readonly string[]): Uint8Array[] {
  const chunks: Uint8Array[] = [];
  for (let at = 0; at < lines.length; ) {
    let end = at;
    for (let chars = 0; end < lines.length && end - at < CHUNK_LINES && chars < CHUNK_CHARS; end++)
      chars += lines[end]!.length;
    chunks.push(utf8.encode(lines.slice(at, end).join('')));
    at = end;
  }
  return chunks;
}

const escapeCopy = (json: string): string => (json.includes('\\') ? json.replaceAll('\\', '\\\\') : json);
const bytea = (hex: string): string => `\\\\x${hex.slice(2)}`;

/** A span that a filter cuts is counted row by row: it ends at the next block once it has so many. */
const SPAN_ROWS = 5_000;

class SpanCounter {
  readonly #spans = new Map<string, SpanDraft>();
  readonly #full: SpanDraft[] = [];

  note(contractId: number, eventId: number, block: number, timestamp: number): void {
    const key = `${contractId}.${eventId}`;
    const span = this.#spans.get(key);
    if (!span || (span.rows >= SPAN_ROWS && block > span.toBlock)) {
      if (span) this.#full.push(span);
      this.#spans.set(key, {
        contractId,
        eventId,
        fromBlock: block,
        toBlock: block,
        fromTimestamp: timestamp,
        toTimestamp: timestamp,
        rows: 1,
      });
      return;
    }
    span.rows++;
    if (block < span.fromBlock) span.fromBlock = block;
    if (block > span.toBlock) span.toBlock = block;
    if (timestamp < span.fromTimestamp) span.fromTimestamp = timestamp;
    if (timestamp > span.toTimestamp) span.toTimestamp = timestamp;
  }

  list(): SpanDraft[] {
    return [...this.#full, ...this.#spans.values()];
  }
}

export const EVENT_COLUMNS =
  '(block_number, log_index, contract_id, event_id, "timestamp", transaction_hash, args)';
export const TRANSACTION_COLUMNS =
  '(block_number, transaction_index, hash, "from", "to", value, gas, gas_price, "timestamp")';

/** @param timestampOf of a block whose logs do not say it */
export function eventRows(
  logs: readonly Log[],
  claims: Claims,
  timestampOf: (blockNumber: number) => number,
): RowBatch {
  const spans = new SpanCounter();
  const lines: string[] = [];
  for (const log of logs) {
    const wanted = claims.read(log);
    if (!wanted) continue;
    const { contractId, eventId, args } = wanted;
    const timestamp = log.timestamp ?? timestampOf(log.blockNumber);
    spans.note(contractId, eventId, log.blockNumber, timestamp);
    lines.push(
      `${log.blockNumber}\t${log.logIndex}\t${contractId}\t${eventId}\t${timestamp}\t${bytea(log.transactionHash)}\t${escapeCopy(args)}\n`,
    );
  }
  return { chunks: encodeLines(lines), rows: lines.length, spans: spans.list() };
}

/** Of one block, whose header is known: it and not a log says when that was. */
export const blockRows = (
  { timestamp }: Pick<Header, 'timestamp'>,
  logs: readonly Log[],
  claims: Claims,
): RowBatch =>
  eventRows(
    logs.map((log) => ({ ...log, timestamp })),
    claims,
    () => timestamp,
  );

export interface BlockTransactions {
  readonly number: number;
  readonly timestamp: number;
  readonly transactions: readonly Transaction[];
}

/** The transactions that an address sent or received. @param fromBlocks address -> block before which it is not wanted */
export function transactionRows(
  blocks: readonly BlockTransactions[],
  fromBlocks: ReadonlyMap<string, number>,
): RowBatch {
  const spans = new SpanCounter();
  const lines: string[] = [];
  for (const { number, timestamp, transactions } of blocks) {
    const isWanted = (address: string | null) =>
      address !== null && number >= (fromBlocks.get(address) ?? Number.POSITIVE_INFINITY);
    for (const one of transactions) {
      if (!isWanted(one.from) && !isWanted(one.to)) continue;
      spans.note(0, 0, number, timestamp);
      const to = one.to === null ? '\\N' : bytea(one.to);
      lines.push(
        `${number}\t${one.index}\t${bytea(one.hash)}\t${bytea(one.from)}\t${to}\t${one.value}\t${one.gas}\t${one.gasPrice}\t${timestamp}\n`,
      );
    }
  }
  return { chunks: encodeLines(lines), rows: lines.length, spans: spans.list() };
}
