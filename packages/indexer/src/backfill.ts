import { AppError } from '@skerry/protocol';
import type pg from 'pg';
import { type Claim, Claims } from './chain/claims.ts';
import { type Header, hexNumber } from './chain/shape.ts';
import {
  CONTRADICTIONS,
  checkAnchor,
  checkEmptyBlock,
  checkLogs,
  checkSame,
  type FullBlock,
  fetchFullBlocks,
  fetchHeaders,
  fetchLogsOf,
  isTooLarge,
  judgeBlock,
  logFilter,
  unlessFailed,
} from './chain/source.ts';
import type { DecodePool } from './decode/pool.ts';
import { keyOfClaims, type RangeResult, type RangeTask } from './decode/range.ts';
import { blockRows, digestOfBatch, joinBatches, type RowBatch, transactionRows } from './decode/rows.ts';
import { RpcError } from './rpc/failures.ts';
import { lowerBatch } from './rpc/limits.ts';
import type { Endpoint, RpcPool } from './rpc/pool.ts';
import { commitStretch, OffChain } from './store/commit.ts';
import { listContractEvents } from './store/declared.ts';
import { listWindow } from './store/networks.ts';
import type { Partitions } from './store/partitions.ts';
import { claimsOf, type Pass } from './store/scans.ts';

/** Logs that one request should bring: enough for COPY to pay, little enough for a timeout. */
const TARGET_LOGS = 10_000;
/** Of a chain of which nothing is known yet: a block may hold thousands of logs. */
const FIRST_BLOCKS = 16;
const GROWTH = 4;
/** Full blocks are large. */
const TRANSACTION_BLOCKS = 100;
/** Stretches that are fetched and not yet written: what memory a backfill takes. */
const AHEAD_MAX = 8;
/** After so many stretches a pass ends, so that others get their turn. */
const PASS_STRETCHES_MAX = 128;
/** Second looks at blocks of one stretch. */
const SUSPICIONS_MAX = 16;

/** How many headers are compared with the logs: of the ends of a range, of some blocks between, of every block. */
export type Verification = 'ends' | 'sample' | 'every';
const SAMPLES = 4;

export interface BackfillOptions {
  readonly pool: pg.Pool;
  readonly rpc: RpcPool;
  readonly decode: DecodePool;
  readonly partitions: Partitions;
  readonly networkId: number;
  readonly blooms: boolean;
  readonly verification: Verification;
  readonly rangeBlocksMax: number;
}

interface Stretch {
  /** Who sent it, or its first part. */
  readonly source: Endpoint;
  readonly from: number;
  readonly to: number;
  readonly batch: RowBatch;
  /** What the endpoint sent, for the size of the next ones. */
  readonly items: number;
  readonly first: Header;
  readonly last: Header;
}

/** What is asked of a range. */
interface WantedLogs {
  readonly claims: readonly Claim[];
  readonly compiled: Claims;
  /** Of the claims. */
  readonly key: string;
}

type ReadRange = Extract<RangeResult, { readonly ok: true }>;

/** Numbers of the blocks whose headers are asked for with the logs of a range. */
function chooseHeaders(from: number, to: number, verification: Verification, random: () => number): number[] {
  const size = to - from + 1;
  if (verification === 'every' || size <= 2) return Array.from({ length: size }, (_, index) => from + index);
  const samples = Array.from(
    { length: verification === 'sample' ? SAMPLES : 0 },
    () => from + 1 + Math.floor(random() * (size - 2)),
  );
  return [...new Set([from, ...samples, to])];
}

/** Blocks of the next stretch, from what the last one brought. */
function nextSize(size: number, blocks: number, items: number, largest: number): number {
  const ideal = items === 0 ? size * GROWTH : Math.floor((TARGET_LOGS * blocks) / items);
  return Math.max(1, Math.min(largest, ideal, size * GROWTH));
}

/** Reads one pass: many ranges at the same time, written in order, so that one number says how far it is. */
export class Backfill {
  readonly #options: BackfillOptions;
  #size = FIRST_BLOCKS;
  /** Whether a stretch has shown how much blocks hold; before it, ranges side by side could be too much by far. */
  #hasLearned = false;
  #contradictions = 0;

  constructor(options: BackfillOptions) {
    this.#options = options;
  }

  /**
   * Gives how many stretches were written. Throws Moved, UPSTREAM_UNAVAILABLE, OffChain, or what the database throws;
   * what was written stays.
   *
   * @param onWritten after each stretch
   */
  async run(pass: Pass, isStale: () => boolean, onWritten: () => void): Promise<void> {
    const { pool, partitions, networkId } = this.#options;
    const events = await listContractEvents(
      pool,
      pass.scans.map(({ contractId }) => contractId),
    );
    const claims = claimsOf(pass.scans, events);
    const stop = new AbortController();
    const read = this.#readerOf(pass, claims, stop.signal);
    const ahead: Promise<Stretch>[] = [];
    let next = pass.from;
    let indexing = Promise.resolve();
    // Scans that were read apart until here may have been read from different chains.
    let priors = [...new Set(pass.scans.flatMap(({ priorHash }) => priorHash ?? []))];
    try {
      for (let done = 0; done < PASS_STRETCHES_MAX && !isStale(); done++) {
        const left = PASS_STRETCHES_MAX - done;
        while (next <= pass.to && ahead.length < Math.min(left, this.#aheadMax())) {
          const to = Math.min(pass.to, next + this.#size - 1);
          const reading = read(next, to);
          // Awaited in order; a failure of a later one must not be an unhandled one meanwhile.
          reading.catch(() => {});
          ahead.push(reading);
          next = to + 1;
        }
        const stretch = await ahead.shift();
        if (!stretch) break;
        for (const prior of priors) await this.#checkLink(stretch, prior);
        await this.#checkWindow(stretch);
        this.#learnSize(pass, stretch);
        await partitions.ensure(pass.kind, stretch.from, stretch.to);
        await commitStretch(pool, networkId, pass, { ...stretch, lastHash: stretch.last.hash });
        onWritten();
        priors = [stretch.last.hash];
        // What others still fill stays bare.
        const filled = Math.min(stretch.from, pass.othersFrom);
        indexing = indexing.then(() => partitions.finish(filled));
        indexing.catch(() => {});
      }
    } finally {
      stop.abort();
      await Promise.allSettled(ahead);
    }
    await indexing;
  }

  #aheadMax(): number {
    return this.#hasLearned ? Math.max(1, Math.min(AHEAD_MAX, this.#options.rpc.capacity)) : 1;
  }

  #learnSize(pass: Pass, { from, to, items }: Stretch): void {
    this.#hasLearned = true;
    const { rpc, rangeBlocksMax } = this.#options;
    const learned = Math.max(...rpc.endpoints.map((one) => one.learned.rangeBlocks));
    const largest = Math.min(rangeBlocksMax, pass.kind === 'events' ? learned : TRANSACTION_BLOCKS);
    this.#size = nextSize(this.#size, to - from + 1, items, largest);
  }

  /**
   * Ranges come from several endpoints, today and after a restart: together they have to be one chain. Throws OffChain
   * where it is what was written that is not of the chain any more, UPSTREAM_UNAVAILABLE where it is what was read now.
   */
  async #checkLink({ from, first, source }: Stretch, prior: string): Promise<void> {
    if (first.parentHash === prior) return;
    const verdict = await judgeBlock(this.#options.rpc, from - 1, prior);
    this.#contradictions = verdict === 'gone' ? this.#contradictions + 1 : 0;
    if (this.#contradictions >= CONTRADICTIONS) throw new OffChain(from - 1);
    if (verdict === 'stands')
      source.note({ kind: 'lie', reason: `block ${from} does not follow block ${from - 1}` }, 0);
    throw new AppError(
      'UPSTREAM_UNAVAILABLE',
      `block ${from} does not follow the block before it as it was read`,
    );
  }

  /** A stretch that ends where the window is has to end in it: the step at the head decides which chain that is. */
  async #checkWindow({ to, last, source }: Stretch): Promise<void> {
    const { pool, networkId } = this.#options;
    const [known] = await listWindow(pool, networkId, to, to);
    if (!known || known.hash === last.hash) return;
    const reason = `block ${to} is another one than at the head`;
    source.note({ kind: 'lie', reason }, 0);
    throw new AppError('UPSTREAM_UNAVAILABLE', reason);
  }

  #readerOf(
    pass: Pass,
    claims: readonly Claim[],
    signal: AbortSignal,
  ): (from: number, to: number) => Promise<Stretch> {
    const compiled = new Claims(claims);
    const key = keyOfClaims(claims);
    const fromBlocks = new Map(pass.scans.map(({ address, fromBlock }) => [address, fromBlock]));
    const one = async (endpoint: Endpoint, from: number, to: number): Promise<Stretch> => {
      if (pass.kind === 'transactions') return this.#readTransactions(endpoint, from, to, fromBlocks);
      try {
        return await this.#readLogs(endpoint, from, to, { claims, compiled, key });
      } catch (error) {
        if (from < to || !isTooLarge(error)) throw error;
        return this.#readBlock(endpoint, from, compiled);
      }
    };
    const read = async (from: number, to: number): Promise<Stretch> => {
      const blocks = to - from + 1;
      try {
        return await this.#options.rpc.run((endpoint) => readInParts(endpoint, from, to, one), {
          head: to,
          blocks,
          signal,
        });
      } catch (error) {
        if (!(error instanceof RpcError) || blocks === 1) throw error;
        const middle = from + Math.floor(blocks / 2) - 1;
        this.#size = Math.max(1, Math.min(this.#size, Math.floor(blocks / 2)));
        return joinStretches([await read(from, middle), await read(middle + 1, to)]);
      }
    };
    return read;
  }

  async #readLogs(endpoint: Endpoint, from: number, to: number, wanted: WantedLogs): Promise<Stretch> {
    const { rpc, verification } = this.#options;
    const result = await this.#fetchLogs(endpoint, from, to, wanted);
    for (const block of result.suspicious.slice(0, SUSPICIONS_MAX))
      await checkEmptyBlock(rpc, endpoint, block, wanted.compiled);
    const byNumber = new Map(result.headers.map((header) => [header.number, header]));
    const [first, last] = [byNumber.get(from)!, byNumber.get(to)!];
    await checkAnchor(rpc, endpoint, last);
    const { batch, logs: items } = result;
    if (verification === 'every' && batch.rows > 0)
      await checkSame(rpc, endpoint, {
        number: to,
        said: digestOfBatch(batch),
        ask: async (one) => {
          const found = await unlessFailed(this.#readAgain(one, from, to, wanted));
          return found && digestOfBatch(found);
        },
        reason: `logs of blocks ${from} to ${to} are other ones at other endpoints`,
      });
    return { source: endpoint, from, to, batch, items, first, last };
  }

  /** The rows of a range as another endpoint has them, to compare with. Throws RpcError. */
  async #readAgain(endpoint: Endpoint, from: number, to: number, wanted: WantedLogs): Promise<RowBatch> {
    const blocks = to - from + 1;
    try {
      if (blocks <= endpoint.learned.rangeBlocks)
        return (await this.#fetchLogs(endpoint, from, to, wanted)).batch;
    } catch (error) {
      if (!isTooLarge(error)) throw error;
      endpoint.note((error as RpcError).failure, blocks);
      if (blocks === 1) {
        const [header] = await fetchHeaders(endpoint, [from]);
        const [logs] = await fetchLogsOf(endpoint, [header!], wanted.compiled);
        return blockRows(header!, logs!, wanted.compiled);
      }
    }
    const middle = from + Math.floor(blocks / 2) - 1;
    return joinBatches([
      await this.#readAgain(endpoint, from, middle, wanted),
      await this.#readAgain(endpoint, middle + 1, to, wanted),
    ]);
  }

  async #fetchLogs(
    endpoint: Endpoint,
    from: number,
    to: number,
    { claims, compiled, key }: WantedLogs,
  ): Promise<ReadRange> {
    const { decode, blooms, verification } = this.#options;
    const wanted = chooseHeaders(from, to, verification, Math.random);
    const together = endpoint.learned.batchCalls > wanted.length;
    const numbers = together ? wanted : [];
    const filter = { fromBlock: hexNumber(from), toBlock: hexNumber(to), ...logFilter(compiled) };
    const calls = [
      { method: 'eth_getLogs', params: [filter] },
      ...numbers.map((number) => ({ method: 'eth_getBlockByNumber', params: [hexNumber(number), false] })),
    ];
    const task: RangeTask = {
      body: await endpoint.send(calls),
      from,
      to,
      headers: numbers,
      known: together ? [] : await fetchHeaders(endpoint, wanted),
      claims,
      claimsKey: key,
      blooms,
    };
    let result = await decode.read(task);
    if (result.ok && result.missing.length > 0) {
      const known = [...result.headers, ...(await fetchHeaders(endpoint, result.missing))];
      result = await decode.read({ ...task, body: result.body!, known });
    }
    if (result.ok) return result;
    // Not every endpoint takes batches.
    if (calls.length > 1 && ['malformed', 'refused'].includes(result.failure.kind))
      endpoint.learned = lowerBatch(endpoint.learned, 1);
    throw new RpcError(result.failure);
  }

  /** A block that has more logs than one answer of the endpoint. */
  async #readBlock(endpoint: Endpoint, number: number, claims: Claims): Promise<Stretch> {
    const [header] = await fetchHeaders(endpoint, [number]);
    const [logs] = await fetchLogsOf(endpoint, [header!], claims);
    const { rpc, verification } = this.#options;
    await checkAnchor(rpc, endpoint, header!);
    if (verification === 'every')
      await checkLogs(rpc, endpoint, { blocks: [header!], logs: [logs!], claims });
    const batch = blockRows(header!, logs!, claims);
    const place = { source: endpoint, from: number, to: number };
    return { ...place, batch, items: logs!.length, first: header!, last: header! };
  }

  async #readTransactions(
    endpoint: Endpoint,
    from: number,
    to: number,
    fromBlocks: ReadonlyMap<string, number>,
  ): Promise<Stretch> {
    const numbers = Array.from({ length: to - from + 1 }, (_, index) => from + index);
    const blocks = await fetchFullBlocks(endpoint, numbers);
    checkChain(blocks);
    const last = blocks.at(-1)!.header;
    await checkAnchor(this.#options.rpc, endpoint, last);
    const batch = transactionRows(
      blocks.map(({ header, transactions }) => ({ ...header, transactions })),
      fromBlocks,
    );
    const items = blocks.reduce((sum, { transactions }) => sum + transactions.length, 0);
    return { source: endpoint, from, to, batch, items, first: blocks[0]!.header, last };
  }
}

function checkChain(blocks: readonly FullBlock[]): void {
  for (const [index, { header }] of blocks.entries()) {
    const parent = blocks[index - 1]?.header;
    if (parent && parent.hash !== header.parentHash)
      throw new RpcError({ kind: 'lie', reason: `block ${header.number} does not follow its parent` });
  }
}

/** A range in pieces that this endpoint takes. */
async function readInParts(
  endpoint: Endpoint,
  from: number,
  to: number,
  read: (endpoint: Endpoint, from: number, to: number) => Promise<Stretch>,
): Promise<Stretch> {
  const parts: Stretch[] = [];
  for (let at = from; at <= to; ) {
    const end = Math.min(to, at + endpoint.learned.rangeBlocks - 1);
    parts.push(await read(endpoint, at, end));
    at = end + 1;
  }
  return joinStretches(parts);
}

function joinStretches(parts: readonly Stretch[]): Stretch {
  if (parts.length === 1) return parts[0]!;
  const first = parts[0]!;
  const last = parts.at(-1)!;
  for (const [index, part] of parts.entries()) {
    const before = parts[index - 1];
    if (before && before.last.hash !== part.first.parentHash)
      throw new RpcError({ kind: 'lie', reason: `block ${part.from} does not follow block ${before.to}` });
  }
  return {
    source: first.source,
    from: first.from,
    to: last.to,
    first: first.first,
    last: last.last,
    batch: joinBatches(parts.map(({ batch }) => batch)),
    items: parts.reduce((sum, { items }) => sum + items, 0),
  };
}
