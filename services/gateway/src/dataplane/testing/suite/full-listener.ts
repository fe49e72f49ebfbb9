import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { Worker } from 'node:worker_threads';

/**
 * A listener whose queue is full and that accepts nobody: the kernel drops what else comes, so a connection to it
 * neither opens nor fails. It stands for a machine that does not answer. The thread that owns it is blocked.
 */
const LISTEN_AND_BLOCK = `
  const { parentPort, workerData } = require('node:worker_threads');
  const server = require('node:net').createServer();
  server.listen({ ...workerData, backlog: 1 }, () => {
    parentPort.postMessage('listening');
    setImmediate(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0));
  });
`;

const FILLERS = 8;
/** On loopback a connection that opens does so at once. */
const OPEN_MS = 300;

export async function openFullListener(host: string, port: number): Promise<AsyncDisposable> {
  const worker = new Worker(LISTEN_AND_BLOCK, { eval: true, workerData: { host, port } });
  await once(worker, 'message');
  const fillers: Socket[] = [];
  for (let i = 0; i < FILLERS; i++) {
    const filler = connect({ host, port });
    filler.on('error', () => {});
    fillers.push(filler);
    const opened = await Promise.race([
      once(filler, 'connect').then(() => true),
      new Promise<false>((resolve) => setTimeout(() => resolve(false), OPEN_MS)),
    ]);
    if (!opened) break;
  }
  return {
    async [Symbol.asyncDispose]() {
      for (const filler of fillers) filler.destroy();
      await worker.terminate();
    },
  };
}
