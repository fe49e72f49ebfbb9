import type { Worker } from 'node:worker_threads';
import { endThread, startThread } from '@skerry/kit/threads';
import { type RangeResult, type RangeTask, readRange } from './range.ts';

/** A small answer is read here: handing it over would take longer. */
const INLINE_BYTES = 128 * 1024;

/** What a range is parsed to lives for one range: room for it that is cleared at once instead of being copied. */
const YOUNG_MIB = 64;

interface Pending {
  readonly resolve: (result: RangeResult) => void;
  readonly reject: (error: Error) => void;
}

interface Thread {
  readonly worker: Worker;
  readonly pending: Map<number, Pending>;
}

/** Reads ranges on worker threads, so that the thread that answers requests stays free. */
export class DecodePool implements AsyncDisposable {
  readonly #size: number;
  #threads: Thread[] = [];
  #lastId = 0;

  /** @param size threads; 0 reads everything here */
  constructor(size: number) {
    this.#size = size;
  }

  /** The body may be handed over to a thread: what is left of it is in the result, where it is needed again. */
  async read(task: RangeTask): Promise<RangeResult> {
    if (this.#size === 0 || task.body.length <= INLINE_BYTES) return readRange(task);
    const thread = this.#choose();
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      thread.pending.set(id, { resolve, reject });
      thread.worker.postMessage({ id, task }, [task.body.buffer as ArrayBuffer]);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const threads = this.#threads;
    this.#threads = [];
    await Promise.all(threads.map(({ worker }) => endThread(worker)));
  }

  #choose(): Thread {
    const idle = this.#threads.find(({ pending }) => pending.size === 0);
    if (idle) return idle;
    if (this.#threads.length < this.#size) return this.#start();
    return this.#threads.reduce((a, b) => (b.pending.size < a.pending.size ? b : a));
  }

  #start(): Thread {
    const worker = startThread(new URL('./worker.ts', import.meta.url), {
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MIB },
    });
    const thread: Thread = { worker, pending: new Map() };
    worker.unref();
    worker.on('message', ({ id, result, error }: { id: number; result?: RangeResult; error?: string }) => {
      const pending = thread.pending.get(id);
      thread.pending.delete(id);
      if (result) pending?.resolve(result);
      else pending?.reject(new Error(error));
    });
    const fail = (error: Error) => {
      this.#threads = this.#threads.filter((one) => one !== thread);
      for (const pending of thread.pending.values()) pending.reject(error);
      thread.pending.clear();
    };
    worker.on('error', fail);
    worker.on('exit', () => fail(new Error('the decoding thread ended')));
    this.#threads.push(thread);
    return thread;
  }
}
