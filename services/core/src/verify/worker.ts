import { parentPort } from 'node:worker_threads';
import { type Task, verifyBody } from './verifier.ts';

parentPort!.on('message', ({ bodies, nowSeconds }: Task) => {
  parentPort!.postMessage(bodies.map((body) => verifyBody(body, nowSeconds)));
});
