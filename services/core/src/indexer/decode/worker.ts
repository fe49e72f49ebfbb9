import { parentPort } from 'node:worker_threads';
import { type RangeTask, readRange } from './range.ts';

/** A worker thread of DecodePool: one task in, one result out. */
parentPort!.on('message', ({ id, task }: { id: number; task: RangeTask }) => {
  try {
    parentPort!.postMessage({ id, result: readRange(task) });
  } catch (error) {
    parentPort!.postMessage({ id, error: String((error as Error).stack ?? error) });
  }
});
