import { backoffMs, type Logger, pause } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import { readResults } from './answers.ts';
import { RpcError, type RpcFailure } from './failures.ts';
import {
  INITIAL,
  type Learned,
  learnFromAnswer,
  learnFromFailure,
  learnFromMiss,
  learnFromSuccess,
  lowerBatch,
} from './limits.ts';
import { type Call, sendCalls } from './transport.ts';

/** How often one piece of work is tried, over all endpoints, before its caller hears of it. */
const ATTEMPTS_MAX = 24;
/** How long to look for a free endpoint between two looks at the clock. */
const WAIT_MAX_MS = 1_000;
/** How often one request is sent to an endpoint that was well, before the work that it is for fails there. */
const TRIES_MAX = 4;
const TRY_BASE_MS = 20;
/** An endpoint that wants to be left alone for longer is no place to wait at. */
const TRY_WAIT_MAX_MS = 500;
/** The share of failures that is believed: nobody is left out for ever. */
const FAILING_MAX = 0.95;

export interface RpcPoolOptions {
  readonly urls: readonly string[];
  readonly timeoutMs: number;
  /** How long an endpoint that contradicts itself or others is left alone. */
  readonly restAfterLieMs: number;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/** What an endpoint cost and how it did, for people. */
export interface EndpointReport {
  /** Its host: the address itself may hold a key. */
  readonly name: string;
  readonly requests: number;
  readonly calls: number;
  readonly failures: Readonly<Record<string, number>>;
  readonly head: number | null;
  readonly rangeBlocks: number;
  readonly concurrency: number;
  readonly resting: boolean;
}

/** One RPC address. */
export class Endpoint {
  readonly name: string;
  learned: Learned = INITIAL;
  /** The highest block that it said it has. */
  head = -1;
  /** The highest block that it said is final; -1 before it said so. */
  finalized = -1;
  /** Looks at its head that failed, since the start. */
  silentLooks = 0;
  inFlight = 0;
  requests = 0;
  calls = 0;
  /** Smoothed time of an answer. */
  latencyMs = 50;
  readonly failures: Record<string, number> = {};
  readonly #url: string;
  readonly #options: RpcPoolOptions;

  constructor(url: string, place: number, options: RpcPoolOptions) {
    this.#url = url;
    this.#options = options;
    this.name = `${new URL(url).host}#${place}`;
  }

  /**
   * The body of the answer to calls of one HTTP request, sent again where it does not get through to an endpoint that was
   * well. Throws RpcError.
   */
  send(calls: readonly Call[]): Promise<Uint8Array> {
    return this.exchange(calls, (body) => body);
  }

  /** The same with what `read` makes of the body: one that cannot be read is asked for once more. */
  async exchange<T>(calls: readonly Call[], read: (body: Uint8Array) => T): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      const wasWell = this.learned.failures === 0;
      try {
        const result = read(await this.#sendOnce(calls));
        this.learned = learnFromAnswer(this.learned);
        return result;
      } catch (error) {
        if (!(error instanceof RpcError)) throw error;
        const { failure } = error;
        const isMiss = PASSING.has(failure.kind);
        this.learned = isMiss ? learnFromMiss(this.learned, failure) : learnFromAnswer(this.learned);
        const waitMs = waitBefore(failure, attempt);
        if (!wasWell || waitMs === undefined) throw error;
        this.#count(failure);
        if (!(await pause(waitMs, this.#options.signal))) throw error;
      }
    }
  }

  async #sendOnce(calls: readonly Call[]): Promise<Uint8Array> {
    const { timeoutMs, signal } = this.#options;
    this.requests++;
    this.calls += calls.length;
    const startMs = performance.now();
    const body = await sendCalls(this.#url, calls, { timeoutMs, signal });
    this.latencyMs += (performance.now() - startMs - this.latencyMs) / 8;
    return body;
  }

  /** The results of calls, in as many HTTP requests as the endpoint takes. Throws RpcError. */
  async ask(calls: readonly Call[]): Promise<unknown[]> {
    const results: unknown[] = [];
    while (results.length < calls.length) {
      const size = this.learned.batchCalls;
      const batch = calls.slice(results.length, results.length + size);
      try {
        results.push(...(await this.exchange(batch, (body) => readResults(body, batch.length))));
      } catch (error) {
        const refused =
          error instanceof RpcError &&
          ['range_too_large', 'malformed', 'refused'].includes(error.failure.kind);
        if (!refused || batch.length === 1) throw error;
        this.learned = lowerBatch(this.learned, batch.length / 4);
      }
    }
    return results;
  }

  note(failure: RpcFailure, blocks: number): void {
    this.#count(failure);
    this.learned = learnFromFailure(this.learned, failure, {
      blocks,
      nowMs: performance.now(),
      random: Math.random(),
      restAfterLieMs: this.#options.restAfterLieMs,
    });
  }

  #count({ kind }: RpcFailure): void {
    this.failures[kind] = (this.failures[kind] ?? 0) + 1;
  }
}

/** Failures of the way to an endpoint, which say nothing of what it was asked for. */
const PASSING: ReadonlySet<RpcFailure['kind']> = new Set([
  'unreachable',
  'rate_limited',
  'malformed',
  'timeout',
]);

/** How long to wait before a request is sent again; undefined: it is not. A timeout has cost enough time already. */
function waitBefore(failure: RpcFailure, attempt: number): number | undefined {
  if (!PASSING.has(failure.kind) || failure.kind === 'timeout') return undefined;
  if (attempt >= (failure.kind === 'malformed' ? 2 : TRIES_MAX)) return undefined;
  const told = failure.kind === 'rate_limited' ? (failure.retryAfterMs ?? 0) : 0;
  return told > TRY_WAIT_MAX_MS
    ? undefined
    : Math.max(told, backoffMs(attempt, TRY_BASE_MS, TRY_WAIT_MAX_MS));
}

export interface Want {
  /** Only endpoints that have this block. */
  readonly head?: number;
  /** Not these, as long as there are others. */
  readonly except?: ReadonlySet<Endpoint>;
  /** Blocks of the range that is asked for, for what is learned when it is too large. */
  readonly blocks?: number;
  /** How often the work is tried; without it as long as a caller should wait who can do nothing else. */
  readonly attempts?: number;
  /** Ends the work between two tries. */
  readonly signal?: AbortSignal;
}

/** Several endpoints of one network as one: work goes to whoever is free and fast, and elsewhere when that fails. */
export class RpcPool {
  readonly endpoints: readonly Endpoint[];
  readonly #options: RpcPoolOptions;
  #waiting = new Set<() => void>();

  constructor(options: RpcPoolOptions) {
    this.#options = options;
    this.endpoints = options.urls.map((url, place) => new Endpoint(url, place, options));
  }

  /** Requests at the same time that the endpoints together take now. */
  get capacity(): number {
    return this.endpoints.reduce((sum, one) => sum + (this.isResting(one) ? 0 : one.learned.concurrency), 0);
  }

  /** The highest block that some endpoint has shown; -1 before the first. */
  get head(): number {
    return Math.max(...this.endpoints.map((one) => one.head));
  }

  get calls(): number {
    return this.endpoints.reduce((sum, one) => sum + one.calls, 0);
  }

  report(): EndpointReport[] {
    return this.endpoints.map((one) => ({
      name: one.name,
      requests: one.requests,
      calls: one.calls,
      failures: { ...one.failures },
      head: one.head < 0 ? null : one.head,
      rangeBlocks: one.learned.rangeBlocks,
      concurrency: one.learned.concurrency,
      resting: this.isResting(one),
    }));
  }

  /** How many requests of each endpoint failed since the start, by kind: why nothing goes on, for a log. */
  failures(): Record<string, Readonly<Record<string, number>>> {
    return Object.fromEntries(this.endpoints.map(({ name, failures }) => [name, { ...failures }]));
  }

  /**
   * Runs `work` with one endpoint, and again with another while it throws RpcError. Of several blocks, `range_too_large`
   * goes to the caller at once, which has to ask for less; of one, another endpoint may take what this one does not. Throws UPSTREAM_UNAVAILABLE when nobody could do it, at once where
   * nobody has the block: only the caller finds out when that changes.
   */
  async run<T>(work: (endpoint: Endpoint) => Promise<T>, want: Want = {}): Promise<T> {
    const tried = new Set(want.except);
    let last: RpcFailure | undefined;
    for (let attempt = 1; attempt <= (want.attempts ?? ATTEMPTS_MAX); attempt++) {
      const endpoint = await this.#acquire(tried, want);
      try {
        const result = await work(endpoint);
        endpoint.learned = learnFromSuccess(endpoint.learned);
        return result;
      } catch (error) {
        if (!(error instanceof RpcError)) throw error;
        last = error.failure;
        endpoint.note(error.failure, want.blocks ?? 0);
        const { kind } = error.failure;
        if (kind === 'lie')
          this.#options.log.warn(
            { endpoint: endpoint.name, reason: error.message },
            'an RPC endpoint contradicts itself or others',
          );
        const isLess = (want.blocks ?? 0) > 1;
        if (isLess && (kind === 'range_too_large' || kind === 'timeout')) throw error;
        tried.add(endpoint);
        if (tried.size >= this.endpoints.length) tried.clear();
      } finally {
        endpoint.inFlight--;
        this.#wake();
      }
    }
    throw new AppError('UPSTREAM_UNAVAILABLE', `no RPC endpoint answers: ${last?.kind ?? 'unknown'}`);
  }

  /** Another endpoint than `not` that is not resting and has the block, to compare with. */
  findOther(not: Endpoint, head: number): Endpoint | undefined {
    return this.endpoints.find((one) => one !== not && !this.isResting(one) && one.head >= head);
  }

  /** All others that are not resting and may have the block, first those that have shown that they do, and of these those that answer. */
  listOthers(not: Endpoint, number: number): Endpoint[] {
    return this.endpoints
      .filter((one) => one !== not && !this.isResting(one) && mayHave(one, number))
      .toSorted(
        (a, b) =>
          Number(b.head >= number) - Number(a.head >= number) || a.learned.failures - b.learned.failures,
      );
  }

  /** Whether it is left alone for now. */
  isResting(endpoint: Endpoint): boolean {
    return endpoint.learned.restUntilMs > performance.now();
  }

  async #acquire(tried: ReadonlySet<Endpoint>, want: Want): Promise<Endpoint> {
    for (let round = 0; ; round++) {
      this.#options.signal.throwIfAborted();
      want.signal?.throwIfAborted();
      if (!this.endpoints.some((one) => mayHave(one, want.head)))
        throw new AppError('UPSTREAM_UNAVAILABLE', `no RPC endpoint has block ${want.head}`);
      const endpoint = this.#choose(tried, want) ?? (round > 0 ? this.#choose(new Set(), want) : undefined);
      if (endpoint) {
        endpoint.inFlight++;
        return endpoint;
      }
      await this.#waitForChange();
    }
  }

  #choose(tried: ReadonlySet<Endpoint>, want: Want): Endpoint | undefined {
    const cost = ({ latencyMs, inFlight, learned }: Endpoint) =>
      (latencyMs * (inFlight + 1)) / (1 - Math.min(learned.failing, FAILING_MAX));
    let best: Endpoint | undefined;
    for (const one of this.endpoints) {
      if (tried.has(one) || this.isResting(one) || one.inFlight >= one.learned.concurrency) continue;
      if (!mayHave(one, want.head)) continue;
      if (best === undefined || cost(one) < cost(best)) best = one;
    }
    return best;
  }

  async #waitForChange(): Promise<void> {
    const now = performance.now();
    const rests = this.endpoints.map((one) => one.learned.restUntilMs - now).filter((ms) => ms > 0);
    const turn = new AbortController();
    const wake = () => turn.abort();
    this.#waiting.add(wake);
    await pause(Math.min(WAIT_MAX_MS, ...rests), AbortSignal.any([turn.signal, this.#options.signal]));
    this.#waiting.delete(wake);
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = new Set();
    for (const wake of waiting) wake();
  }
}

/** An endpoint that nobody has looked at yet may have every block. */
const mayHave = (one: Endpoint, block: number | undefined): boolean =>
  block === undefined || one.head < 0 || one.head >= block;
