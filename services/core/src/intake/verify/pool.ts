import { Worker } from 'node:worker_threads';
import type { Logger } from '@skerry/kit';
import { AppError, type VerifiedMessage } from '@skerry/protocol';
import { packFrames, readVerified, type Task, type Verifier, type VerifyResult } from './verifier.ts';

/** Bodies that wait to be verified. A caller beyond it is told to come back: memory stays bounded. */
const MAX_WAITING = 10_000;
/** Bodies in one message to a worker. */
const MAX_TASK_BODIES = 64;
/** Frames in one message to a worker: a body of a client waits for no more than these. */
const MAX_TASK_FRAMES = 100;
/** Tasks of frames that wait; a page of a peer is twenty. */
const MAX_WAITING_TASKS = 1_000;

interface Waiting {
  readonly body: Uint8Array;
  readonly isShared: boolean;
  readonly nowSeconds: number;
  readonly resolve: (message: VerifiedMessage) => void;
  readonly reject: (error: unknown) => void;
}

/** Something for one thread to do at once. */
interface Job {
  readonly task: Task;
  readonly transfer: readonly ArrayBuffer[];
  settle(results: readonly VerifyResult[]): void;
  fail(error: unknown): void;
}

/** One thread and what it is working on. */
interface Seat {
  worker: Worker;
  busy: Job | undefined;
}

/**
 * Verifies on worker threads, so that signatures cost the thread that answers requests nothing. While every worker is
 * busy the bodies gather, and go out together.
 */
export class VerifierPool implements Verifier {
  readonly #waiting: Waiting[] = [];
  readonly #frames: Job[] = [];
  readonly #seats: Seat[] = [];
  readonly #log: Logger;
  readonly #maxWaiting: number;
  #closed = false;

  constructor(options: { readonly workers: number; readonly log: Logger; readonly maxWaiting?: number }) {
    this.#log = options.log;
    this.#maxWaiting = options.maxWaiting ?? MAX_WAITING;
    for (let index = 0; index < options.workers; index++) {
      const seat: Seat = { worker: undefined as never, busy: undefined };
      this.#seats.push(seat);
      this.#seatWorker(seat);
    }
  }

  /** The threads as they are now. */
  get workers(): readonly Worker[] {
    return this.#seats.map(({ worker }) => worker);
  }

  verify(body: Uint8Array, nowSeconds: number): Promise<VerifiedMessage> {
    return this.#enqueue(body, nowSeconds, false);
  }

  verifyShared(body: Uint8Array, nowSeconds: number): Promise<VerifiedMessage> {
    return this.#enqueue(body, nowSeconds, true);
  }

  /** What clients send goes first: a node that takes in a peer's history still answers. */
  async verifyAll(frames: readonly Uint8Array[], nowSeconds: number): Promise<VerifyResult[]> {
    this.#checkOpen();
    if (this.#frames.length >= MAX_WAITING_TASKS)
      throw new AppError('OVERLOADED', `${MAX_WAITING_TASKS} pages of messages are waiting to be verified`);
    const parts: Promise<readonly VerifyResult[]>[] = [];
    for (let at = 0; at < frames.length; at += MAX_TASK_FRAMES) {
      const task = packFrames(frames.slice(at, at + MAX_TASK_FRAMES), nowSeconds);
      const { promise, resolve: settle, reject: fail } = Promise.withResolvers<readonly VerifyResult[]>();
      this.#frames.push({ task, transfer: [task.packed.buffer], settle, fail });
      parts.push(promise);
    }
    this.#giveOut();
    return (await Promise.all(parts)).flat();
  }

  #checkOpen(): void {
    if (this.#closed) throw new AppError('SHUTTING_DOWN', 'the node is stopping');
  }

  async #enqueue(body: Uint8Array, nowSeconds: number, isShared: boolean): Promise<VerifiedMessage> {
    this.#checkOpen();
    if (this.#waiting.length >= this.#maxWaiting)
      throw new AppError('OVERLOADED', `${this.#maxWaiting} messages are waiting to be verified`);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ body, isShared, nowSeconds, resolve, reject });
      this.#giveOut();
    });
  }

  #seatWorker(seat: Seat): void {
    const worker = new Worker(new URL('./worker.ts', import.meta.url), { name: 'verify' });
    seat.worker = worker;
    // The process may end while they wait for work.
    worker.unref();
    worker.on('message', (results: VerifyResult[]) => {
      const done = seat.busy;
      seat.busy = undefined;
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
    seat.busy?.fail(new AppError('INTERNAL', 'the verification failed'));
    seat.busy = undefined;
    this.#seatWorker(seat);
    this.#giveOut();
  }

  #giveOut(): void {
    for (const seat of this.#seats) {
      if (seat.busy) continue;
      const job =
        this.#waiting.length > 0 ? jobOf(this.#waiting.splice(0, MAX_TASK_BODIES)) : this.#frames.shift();
      if (!job) return;
      seat.busy = job;
      seat.worker.postMessage(job.task, job.transfer);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    await Promise.all(this.#seats.map(({ worker }) => worker.terminate()));
    const stopped = new AppError('SHUTTING_DOWN', 'the node is stopping');
    for (const one of this.#waiting.splice(0)) one.reject(stopped);
    for (const job of [...this.#frames.splice(0), ...this.#seats.map(({ busy }) => busy)]) job?.fail(stopped);
  }
}

function jobOf(waiting: readonly Waiting[]): Job {
  return {
    task: {
      bodies: waiting.map(({ body }) => body),
      shared: waiting.map(({ isShared }) => isShared),
      nowSeconds: waiting[0]!.nowSeconds,
    },
    transfer: [],
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
