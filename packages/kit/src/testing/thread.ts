import { parentPort } from 'node:worker_threads';
import { endWhenTold } from '../threads.ts';

/** A thread that takes its time to load: it waits at its top, as some modules do, again and again. */
const TURNS = 1_000;
for (let turn = 0; turn < TURNS; turn++) await null;
endWhenTold(parentPort!);
parentPort!.on('message', (word) => parentPort!.postMessage({ word }));
