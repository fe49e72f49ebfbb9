import { parentPort, workerData } from 'node:worker_threads';
import { endWhenTold } from '@skerry/kit/threads';
import { loadBatchCheck } from './batch/addon.ts';
import { SignatureBatch } from './batch/batch.ts';
import { packResult, runTask, type Task } from './verifier.ts';

/** What a thread is told beside its tasks: the addon that checks signatures in batches. */
export interface UseBatches {
  readonly addon: string;
}

const loadBatch = (addon: string) => new SignatureBatch(loadBatchCheck(addon));

const known = (workerData as Partial<UseBatches>).addon;
let batch = known === undefined ? undefined : loadBatch(known);

endWhenTold(parentPort!);
parentPort!.on('message', (given: Task | UseBatches) => {
  if ('addon' in given) batch = loadBatch(given.addon);
  else parentPort!.postMessage(packResult(runTask(given, batch)));
});
