import { sha256Hex } from '@skerry/protocol';
import { type Claim, Claims } from '../chain/claims.ts';
import { type Header, type Log, parseHeader, parseLogs } from '../chain/shape.ts';
import { readAnswers } from '../rpc/answers.ts';
import { RpcError, type RpcFailure } from '../rpc/failures.ts';
import { EMPTY_BATCH, eventRows, type RowBatch } from './rows.ts';

/** The answer to one request for a range's logs and some of its headers, and what is known of the range. Plain data. */
export interface RangeTask {
  /** Of a batch: call 0 the logs, then one header for each of `headers`. */
  readonly body: Uint8Array;
  readonly from: number;
  readonly to: number;
  /** Numbers of the blocks whose headers were asked for. */
  readonly headers: readonly number[];
  /** Headers that were read before, for timestamps. */
  readonly known: readonly Header[];
  readonly claims: readonly Claim[];
  /** What `keyOfClaims` gives of them, so that they are compiled once. */
  readonly claimsKey: string;
  /** Whether the network fills its blooms in. */
  readonly blooms: boolean;
}

export type RangeResult =
  | { readonly ok: false; readonly failure: RpcFailure }
  | {
      readonly ok: true;
      readonly batch: RowBatch;
      /** Logs that the endpoint sent, wanted or not. */
      readonly logs: number;
      readonly headers: readonly Header[];
      /** Blocks whose timestamp is not known: ask for their headers and read again. */
      readonly missing: readonly number[];
      /** The body again, where something is missing. */
      readonly body: Uint8Array | undefined;
      /** Blocks whose bloom says that something is there, and no log was sent. */
      readonly suspicious: readonly Pick<Header, 'number' | 'hash' | 'bloom'>[];
    };

/**
 * Of what the claims say, not of the numbers that a database gave them: another database, in this process too, or this one
 * after it was restored, gives the same numbers to other contracts.
 */
export const keyOfClaims = (claims: readonly Claim[]): string => sha256Hex(JSON.stringify(claims));

const COMPILED_MAX = 8;
const compiled = new Map<string, Claims>();

function claimsOf(key: string, claims: readonly Claim[]): Claims {
  let found = compiled.get(key);
  if (!found) {
    if (compiled.size >= COMPILED_MAX) compiled.clear();
    found = new Claims(claims);
    compiled.set(key, found);
  }
  return found;
}

/** Reads, checks and decodes a range's logs. Pure but for a cache; runs on worker threads. */
export function readRange(task: RangeTask): RangeResult {
  try {
    const answers = readAnswers(task.body, 1 + task.headers.length);
    for (const answer of answers) if (answer instanceof RpcError) throw answer;
    const headers = answers.slice(1).map((value, index) => {
      // A node that does not have a block of the range cannot have all of its logs either.
      if (value === null) throw new RpcError({ kind: 'stale' });
      const header = parseHeader(value);
      if (header.number !== task.headers[index])
        throw lie(`another block than ${task.headers[index]} was sent`);
      return header;
    });
    const logs = parseLogs(answers[0]);
    const claims = claimsOf(task.claimsKey, task.claims);
    const byNumber = checkHeaders([...task.known, ...headers]);
    const blocks = checkLogs(logs, task, byNumber);
    const missing = [...blocks].filter(
      ([number, timestamp]) => timestamp === undefined && !byNumber.has(number),
    );
    const all = [...byNumber.values()];
    return {
      ok: true,
      logs: logs.length,
      headers: all,
      missing: missing.map(([number]) => number),
      body: missing.length > 0 ? task.body : undefined,
      batch:
        missing.length > 0
          ? EMPTY_BATCH
          : eventRows(logs, claims, (number) => byNumber.get(number)!.timestamp),
      suspicious: task.blooms
        ? all
            .filter((one) => one.number >= task.from && one.number <= task.to)
            .filter((one) => !blocks.has(one.number) && claims.mayBeIn(one.bloom, one.number))
            .map(({ number, hash, bloom }) => ({ number, hash, bloom }))
        : [],
    };
  } catch (error) {
    if (error instanceof RpcError) return { ok: false, failure: error.failure };
    throw error;
  }
}

const lie = (reason: string): RpcError => new RpcError({ kind: 'lie', reason });

/** Headers of neighbours name each other; two of one number are the same. */
function checkHeaders(headers: readonly Header[]): Map<number, Header> {
  const byNumber = new Map<number, Header>();
  for (const header of headers) {
    const known = byNumber.get(header.number);
    if (known && known.hash !== header.hash) throw lie(`two blocks have the number ${header.number}`);
    byNumber.set(header.number, header);
  }
  for (const header of headers) {
    const parent = byNumber.get(header.number - 1);
    if (parent && parent.hash !== header.parentHash)
      throw lie(`block ${header.number} does not follow block ${header.number - 1}`);
  }
  return byNumber;
}

/** Within the range, in order, once each, all of a block from the same block and time. Gives the blocks with their timestamps. */
function checkLogs(
  logs: Log[],
  { from, to }: Pick<RangeTask, 'from' | 'to'>,
  headers: ReadonlyMap<number, Header>,
): Map<number, number | undefined> {
  logs.sort((a, b) => a.blockNumber - b.blockNumber || a.logIndex - b.logIndex);
  const blocks = new Map<number, number | undefined>();
  let last: Log | undefined;
  for (const log of logs) {
    if (log.blockNumber < from || log.blockNumber > to)
      throw lie(`a log of block ${log.blockNumber} was sent for blocks ${from} to ${to}`);
    if (last?.blockNumber === log.blockNumber) {
      if (last.blockHash !== log.blockHash)
        throw lie(`logs of two blocks with the number ${log.blockNumber}`);
      if (last.timestamp !== log.timestamp) throw lie(`logs of block ${log.blockNumber} are of two times`);
      if (last.logIndex === log.logIndex)
        throw lie(`log ${log.logIndex} of block ${log.blockNumber} was sent twice`);
    } else {
      const header = headers.get(log.blockNumber);
      if (header && header.hash !== log.blockHash)
        throw lie(`the logs of block ${log.blockNumber} are of another block than its header`);
      if (header && (log.timestamp ?? header.timestamp) !== header.timestamp)
        throw lie(`the logs of block ${log.blockNumber} are of another time than its header`);
      blocks.set(log.blockNumber, log.timestamp);
    }
    last = log;
  }
  return blocks;
}
