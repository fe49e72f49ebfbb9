import { hearReply, type Reply } from './ask-owner.ts';
import { type Asked, doTask, type Told } from './tasks.ts';

/** The whole verifier, in a worker: it is loaded when something is to be checked. */

const tell = (told: Told) => postMessage(told);

addEventListener('message', ({ data }: MessageEvent<Asked | Reply>) => {
  if ('kind' in data) hearReply(data);
  else void doTask(data, tell);
});
// Its modules await WebAssembly: what came before this line would have been lost.
tell({ kind: 'ready' });
