import { parentPort } from 'node:worker_threads';
import { type Task, verifyBody } from './verifier.ts';

parentPort!.on('message', ({ bodies, shared, nowSeconds }: Task) => {
  parentPort!.postMessage(bodies.map((body, index) => verifyBody(body, nowSeconds, shared[index])));
});
