import { parentPort } from 'node:worker_threads';
import { endWhenTold } from '@skerry/kit/threads';
import { type RangeResult, type RangeTask, readRange } from './range.ts';

/** What is handed back instead of being copied: the rows, and the body where it has to be read again. */
const transferOf = (result: RangeResult): ArrayBuffer[] =>
  result.ok
    ? [...result.batch.chunks, ...(result.body ? [result.body] : [])].map(
        ({ buffer }) => buffer as ArrayBuffer,
      )
    : [];

endWhenTold(parentPort!);
/** A worker thread of DecodePool: one task in, one result out. */
parentPort!.on('message', ({ id, task }: { id: number; task: RangeTask }) => {
  try {
    const result = readRange(task);
    parentPort!.postMessage({ id, result }, transferOf(result));
  } catch (error) {
    parentPort!.postMessage({ id, error: String((error as Error).stack ?? error) });
  }
});
