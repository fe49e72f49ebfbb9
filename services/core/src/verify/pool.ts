import { Worker } from 'node:worker_threads';
import type { Logger } from '@skerry/kit';
import { AppError, type VerifiedMessage } from '@skerry/protocol';
import { resultOf, type Task, type Verdict, type Verifier } from './verifier.ts';

/** Bodies that wait to be verified. A caller beyond it is told to come back: memory stays bounded. */
const MAX_WAITING = 10_000;
/** Bodies in one message to a worker. */
const MAX_TASK_BODIES = 64;

interface Waiting {
  readonly body: Uint8Array;
  readonly isShared: boolean;
  readonly nowSeconds: number;
  readonly resolve: (message: VerifiedMessage) => void;
  readonly reject: (error: unknown) => void;
}

/** One thread and what it is working on. */
interface Seat {
  worker: Worker;
  busy: readonly Waiting[];
}

/**
 * Verifies on worker threads, so that signatures cost the thread that answers requests nothing. While every worker is
 * busy the bodies gather, and go out together.
 */
export class VerifierPool implements Verifier {
  readonly #waiting: Waiting[] = [];
  readonly #seats: Seat[] = [];
  readonly #log: Logger;
  readonly #maxWaiting: number;
  #closed = false;

  constructor(options: { readonly workers: number; readonly log: Logger; readonly maxWaiting?: number }) {
    this.#log = options.log;
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

  verify(body: Uint8Array, nowSeconds: number): Promise<VerifiedMessage> {
    return this.#enqueue(body, nowSeconds, false);
  }

  verifyShared(body: Uint8Array, nowSeconds: number): Promise<VerifiedMessage> {
    return this.#enqueue(body, nowSeconds, true);
  }

  #enqueue(body: Uint8Array, nowSeconds: number, isShared: boolean): Promise<VerifiedMessage> {
    if (this.#closed) return Promise.reject(new AppError('SHUTTING_DOWN', 'the node is stopping'));
    if (this.#waiting.length >= this.#maxWaiting)
      return Promise.reject(
        new AppError('OVERLOADED', `${this.#maxWaiting} messages are waiting to be verified`),
      );
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
    worker.on('message', (verdicts: Verdict[]) => {
      const done = seat.busy;
      seat.busy = [];
      this.#giveOut();
      for (const [index, one] of done.entries()) settle(one, verdicts[index]!);
    });
    // Whatever ends a thread, an error of its own included, ends in `exit`.
    let failure: unknown;
    worker.on('error', (error) => {
      failure = error;
    });
    worker.once('exit', (code) => {
      if (!this.#closed) this.#replace(seat, failure ?? new Error(`the thread ended with ${code}`));
    });
  }

  /** A worker that failed takes its messages with it: their senders are told, and a new one takes its seat. */
  #replace(seat: Seat, error: unknown): void {
    this.#log.error({ err: error }, 'a thread that verifies messages failed and is replaced');
    for (const one of seat.busy) one.reject(new AppError('INTERNAL', 'the verification failed'));
    seat.busy = [];
    this.#seatWorker(seat);
    this.#giveOut();
  }

  #giveOut(): void {
    for (const seat of this.#seats) {
      if (this.#waiting.length === 0) return;
      if (seat.busy.length > 0) continue;
      seat.busy = this.#waiting.splice(0, MAX_TASK_BODIES);
      const task: Task = {
        bodies: seat.busy.map(({ body }) => body),
        shared: seat.busy.map(({ isShared }) => isShared),
        nowSeconds: seat.busy[0]!.nowSeconds,
      };
      seat.worker.postMessage(task);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    await Promise.all(this.#seats.map(({ worker }) => worker.terminate()));
    const left = [...this.#waiting.splice(0), ...this.#seats.flatMap((seat) => seat.busy)];
    for (const one of left) one.reject(new AppError('SHUTTING_DOWN', 'the node is stopping'));
  }
}

function settle(one: Waiting, verdict: Verdict): void {
  try {
    one.resolve(resultOf(verdict));
  } catch (error) {
    one.reject(error);
  }
}
