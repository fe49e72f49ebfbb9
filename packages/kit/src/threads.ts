import { type MessagePort, Worker, type WorkerOptions } from 'node:worker_threads';

const RESOLVE = new URL('./modules/resolve.ts', import.meta.url).href;
/** The last word that a thread hears. */
const END = 'end';
/** A thread that does not end by itself is stuck. */
const END_LIMIT_MS = 10_000;

/**
 * An option of Node, for a process that runs daemons: V8 has one thread beside the main one, in place of four. They collect garbage and
 * compile; on two processors four of them keep the database and the main thread from running, and readers wait
 * (docs/performance.md, "Several processes").
 */
export const ONE_V8_THREAD = '--v8-pool-size=1';

/** A thread that finds its modules as fast as the process did. */
export const startThread = (source: URL, options: Omit<WorkerOptions, 'execArgv'> = {}): Worker =>
  new Worker(source, { ...options, execArgv: ['--import', RESOLVE] });

/** For a thread, when all of its modules are loaded: it ends as soon as `endThread` asks for it. */
export function endWhenTold(port: MessagePort): void {
  port.on('message', (word: unknown) => {
    // Here it ends the thread alone.
    if (word === END) process.exit();
  });
}

/**
 * Ends a thread that calls `endWhenTold`, after what it was told before; one that still loads its modules ends right after that.
 * `terminate` would do it at once, but where it meets a module that awaits at its top and goes on, V8 aborts the whole
 * process ("Check failed: !is_null()" in AsyncModuleExecutionFulfilled; Node 26).
 */
export async function endThread(worker: Worker): Promise<void> {
  // It has ended already.
  if (worker.threadId === -1) return;
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  worker.once('exit', () => resolve());
  worker.ref();
  worker.postMessage(END);
  const limit = setTimeout(() => void worker.terminate(), END_LIMIT_MS);
  await ended;
  clearTimeout(limit);
}
