import type { Worker } from 'node:worker_threads';
import type { Logger } from '@skerry/kit';
import { endThread, startThread } from '@skerry/kit/threads';
import { AppError, type VerifiedMessage } from '@skerry/protocol';
import { CLAIMS_MAX } from './batch/claims.ts';
import { Suspects } from './batch/suspects.ts';
import {
  type PackedResult,
  packTask,
  readVerified,
  type Task,
  unpackResult,
  type Verifier,
  type VerifyResult,
} from './verifier.ts';
import type { UseBatches } from './worker.ts';

/** Bodies that wait to be verified. A caller beyond it is told to come back: memory stays bounded. */
const MAX_WAITING = 10_000;
/** The same in bytes, of those that wait and of those in one message to a worker. */
const BYTES_MAX = { waiting: 64 * 1024 * 1024, task: 4 * 1024 * 1024 } as const;
/** Bodies in one message to a worker: as many as a batch of signatures has, where so many wait. */
const MAX_TASK_BODIES = CLAIMS_MAX;
/** Frames in one message to a worker: fewer where all workers would not have one, but not so few that batches gain little. */
const TASK_FRAMES = { least: 64, most: CLAIMS_MAX } as const;
/**
 * Tasks of frames that a worker has at once: it goes on with the second while the main thread, which may be busy, is told of the first.
 * A body of a client waits for no more than these.
 */
const SEAT_TASKS = 2;
/** Bodies and frames that make batches worth preparing: a node that verifies few never needs them. */
const BATCHES_FROM = 1_000;
/** Tasks of frames that wait; a page of a peer is twenty. */
const MAX_WAITING_TASKS = 1_000;

interface Waiting {
  readonly body: Uint8Array;
  readonly isShared: boolean;
  readonly nowSeconds: number;
  readonly from: string;
  readonly resolve: (message: VerifiedMessage) => void;
  readonly reject: (error: unknown) => void;
}

/** Something for one thread to do at once. */
interface Job {
  /** As it is given out: who is suspected then is judged alone. */
  task(isSuspected: (from: string) => boolean): Task;
  /** Whether it is of bodies, which came one by one. */
  readonly isGathered: boolean;
  /** Who brought one of it. */
  fromOf(at: number): string;
  settle(results: readonly VerifyResult[]): void;
  fail(error: unknown): void;
}

/** One thread and what it was given. */
interface Seat {
  worker: Worker;
  /** In the order in which it answers. */
  readonly busy: Job[];
}

/** Makes what checks many signatures at once: the path of the addon, or why there is none. */
export type PrepareBatches = (
  signal: AbortSignal,
) => Promise<{ readonly path: string } | { readonly missing: string }>;

export interface PoolOptions {
  readonly workers: number;
  readonly log: Logger;
  readonly maxWaiting?: number;
  /** Asked once, when the pool has something to do. Left out: each signature is recovered. */
  readonly prepareBatches?: PrepareBatches | undefined;
}

/**
 * Verifies on worker threads, so that signatures cost the thread that answers requests nothing. While every worker is
 * busy the bodies gather, and go out together.
 */
export class VerifierPool implements Verifier {
  readonly #waiting: Waiting[] = [];
  #waitingBytes = 0;
  readonly #frames: Job[] = [];
  readonly #seats: Seat[] = [];
  readonly #log: Logger;
  readonly #maxWaiting: number;
  readonly #suspects = new Suspects();
  readonly #closing = new AbortController();
  #prepareBatches: PrepareBatches | undefined;
  #preparing: Promise<void> | undefined;
  #addon: string | undefined;
  #given = 0;
  #closed = false;

  constructor(options: PoolOptions) {
    this.#log = options.log;
    this.#prepareBatches = options.prepareBatches;
    this.#maxWaiting = options.maxWaiting ?? MAX_WAITING;
    for (let index = 0; index < options.workers; index++) {
      const seat: Seat = { worker: undefined as never, busy: [] };
      this.#seats.push(seat);
      this.#seatWorker(seat);
    }
  }

  /** The threads as they are now. */
  get workers(): readonly Worker[] {
    return this.#seats.map(({ worker }) => worker);
  }

  verify(body: Uint8Array, nowSeconds: number, from = ''): Promise<VerifiedMessage> {
    return this.#enqueue(body, nowSeconds, false, from);
  }

  verifyShared(body: Uint8Array, nowSeconds: number, from = ''): Promise<VerifiedMessage> {
    return this.#enqueue(body, nowSeconds, true, from);
  }

  /** What clients send goes first: a node that takes in a peer's history still answers. */
  async verifyAll(frames: readonly Uint8Array[], nowSeconds: number, from = ''): Promise<VerifyResult[]> {
    this.#checkOpen();
    if (this.#frames.length >= MAX_WAITING_TASKS)
      throw new AppError('OVERLOADED', `${MAX_WAITING_TASKS} pages of messages are waiting to be verified`);
    this.#count(frames.length);
    const parts: Promise<readonly VerifyResult[]>[] = [];
    const share = Math.ceil(frames.length / (this.#seats.length * SEAT_TASKS));
    const size = Math.min(Math.max(share, TASK_FRAMES.least), TASK_FRAMES.most);
    for (let at = 0; at < frames.length; at += size) {
      const own = frames.slice(at, at + size);
      const task = packTask(own, nowSeconds, { shared: own.map(() => true) });
      const { promise, resolve: settle, reject: fail } = Promise.withResolvers<readonly VerifyResult[]>();
      this.#frames.push({
        task: (isSuspected) => {
          const isAlone = isSuspected(from);
          return { ...task, alone: own.map(() => isAlone) };
        },
        isGathered: false,
        fromOf: () => from,
        settle,
        fail,
      });
      parts.push(promise);
    }
    this.#giveOut();
    return (await Promise.all(parts)).flat();
  }

  #checkOpen(): void {
    if (this.#closed) throw new AppError('SHUTTING_DOWN', 'the node is stopping');
  }

  async #enqueue(
    body: Uint8Array,
    nowSeconds: number,
    isShared: boolean,
    from: string,
  ): Promise<VerifiedMessage> {
    this.#checkOpen();
    if (this.#waiting.length >= this.#maxWaiting)
      throw new AppError('OVERLOADED', `${this.#maxWaiting} messages are waiting to be verified`);
    if (this.#waitingBytes + body.length > BYTES_MAX.waiting)
      throw new AppError('OVERLOADED', `${BYTES_MAX.waiting} bytes are waiting to be verified`);
    this.#count(1);
    return new Promise((resolve, reject) => {
      this.#waitingBytes += body.length;
      this.#waiting.push({ body, isShared, nowSeconds, from, resolve, reject });
      this.#giveOut();
    });
  }

  #seatWorker(seat: Seat): void {
    const worker = startThread(new URL('./worker.ts', import.meta.url), {
      name: 'verify',
      workerData: this.#addon === undefined ? {} : ({ addon: this.#addon } satisfies UseBatches),
    });
    seat.worker = worker;
    // The process may end while they wait for work.
    worker.unref();
    worker.on('message', (packed: PackedResult) => {
      const { results, wrong } = unpackResult(packed);
      const done = seat.busy.shift();
      if (done) this.#note(done, wrong);
      this.#giveOut();
      done?.settle(results);
    });
    // Whatever ends a thread, an error of its own included, ends in `exit`.
    let failure: unknown;
    worker.on('error', (error) => {
      failure = error;
    });
    worker.once('exit', (code) => {
      if (!this.#closed) this.#replace(seat, failure ?? new Error(`the thread exited with ${code}`));
    });
  }

  /** A worker that failed takes its messages with it: their senders are told, and a new one takes its seat. */
  #replace(seat: Seat, error: unknown): void {
    this.#log.error({ err: error }, 'a verification thread failed and is replaced');
    for (const job of seat.busy.splice(0)) job.fail(new AppError('INTERNAL', 'the verification failed'));
    this.#seatWorker(seat);
    this.#giveOut();
  }

  #note(job: Job, wrong: readonly number[]): void {
    for (const at of wrong) this.#suspects.add(job.fromOf(at), performance.now());
  }

  /** Batches are prepared while the first are verified one by one. */
  #count(given: number): void {
    this.#given += given;
    const prepare = this.#given >= BATCHES_FROM ? this.#prepareBatches : undefined;
    if (!prepare) return;
    this.#prepareBatches = undefined;
    this.#preparing = this.#startBatches(prepare);
  }

  async #startBatches(prepare: PrepareBatches): Promise<void> {
    const prepared = await prepare(this.#closing.signal).catch((error: unknown) => ({
      missing: (error as Error).message,
    }));
    if (this.#closed) return;
    if ('missing' in prepared) {
      this.#log.info({ reason: prepared.missing }, 'signatures are checked one by one');
      return;
    }
    this.#addon = prepared.path;
    for (const { worker } of this.#seats) worker.postMessage({ addon: prepared.path } satisfies UseBatches);
    this.#log.info('signatures of known senders are checked in batches');
  }

  /** The first of those that wait, for one message to a worker. */
  #takeWaiting(): Waiting[] {
    let bytes = 0;
    const end = this.#waiting.findIndex(({ body }, index) => {
      const isFull = index === MAX_TASK_BODIES || (index > 0 && bytes + body.length > BYTES_MAX.task);
      if (!isFull) bytes += body.length;
      return isFull;
    });
    this.#waitingBytes -= bytes;
    return this.#waiting.splice(0, end === -1 ? MAX_TASK_BODIES : end);
  }

  /** What a thread that has `busy` may have besides: bodies before frames, and those only once, so that they gather meanwhile. */
  #next(busy: readonly Job[]): Job | undefined {
    if (this.#waiting.length === 0) return this.#frames.shift();
    return busy.some(({ isGathered }) => isGathered) ? undefined : jobOf(this.#takeWaiting());
  }

  #giveOut(): void {
    if (this.#closed) return;
    const nowMs = performance.now();
    // Each thread has one before any has two.
    for (let tasks = 0; tasks < SEAT_TASKS; tasks++) {
      for (const { worker, busy } of this.#seats) {
        const job = busy.length > tasks ? undefined : this.#next(busy);
        if (!job) continue;
        busy.push(job);
        const task = job.task((from) => this.#suspects.has(from, nowMs));
        worker.postMessage(task, [task.packed.buffer]);
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    this.#closing.abort();
    await this.#preparing;
    await Promise.all(this.#seats.map(({ worker }) => endThread(worker)));
    const stopped = new AppError('SHUTTING_DOWN', 'the node is stopping');
    for (const one of this.#waiting.splice(0)) one.reject(stopped);
    for (const job of [...this.#frames.splice(0), ...this.#seats.flatMap(({ busy }) => busy)])
      job.fail(stopped);
  }
}

function jobOf(waiting: readonly Waiting[]): Job {
  return {
    task: (isSuspected) =>
      packTask(
        waiting.map(({ body }) => body),
        waiting[0]!.nowSeconds,
        {
          shared: waiting.map(({ isShared }) => isShared),
          alone: waiting.map(({ from }) => isSuspected(from)),
        },
      ),
    isGathered: true,
    fromOf: (at) => waiting[at]!.from,
    settle(results) {
      for (const [index, one] of waiting.entries()) {
        try {
          one.resolve(readVerified(results[index]!, one.body));
        } catch (error) {
          one.reject(error);
        }
      }
    },
    fail(error) {
      for (const one of waiting) one.reject(error);
    },
  };
}
