import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { Worker } from 'node:worker_threads';
import { until } from './world.ts';

const BACKLOG = 1;

/**
 * A listener whose queue is full and that accepts nobody: the kernel drops what else comes, so a connection to it
 * neither opens nor fails. It stands for a machine that does not answer. The thread that owns it is blocked.
 */
const LISTEN_AND_BLOCK = `
  const { parentPort, workerData } = require('node:worker_threads');
  const server = require('node:net').createServer();
  server.listen(workerData, () => {
    parentPort.postMessage('listening');
    setImmediate(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0));
  });
`;

/** The local address, as the kernel writes it, and the state of a listener (proc_pid_net(5)). */
const STATE_LISTEN = '0A';
const hex = (number: number, digits: number) => number.toString(16).toUpperCase().padStart(digits, '0');
const placeOf = (host: string, port: number) =>
  `${host
    .split('.')
    .toReversed()
    .map((part) => hex(Number(part), 2))
    .join('')}:${hex(port, 4)}`;

/** Whether so many wait to be accepted that nobody else gets a place: one more than the backlog. */
function isFull(host: string, port: number): boolean {
  for (const line of readFileSync('/proc/net/tcp', 'utf8').split('\n')) {
    const [, local, , state, queues = ''] = line.trim().split(/\s+/);
    if (local === placeOf(host, port) && state === STATE_LISTEN)
      return Number.parseInt(queues.split(':')[1]!, 16) > BACKLOG;
  }
  return false;
}

/** @param host an IPv4 address */
export async function openFullListener(host: string, port: number): Promise<AsyncDisposable> {
  const worker = new Worker(LISTEN_AND_BLOCK, { eval: true, workerData: { host, port, backlog: BACKLOG } });
  await once(worker, 'message');
  const fillers: Socket[] = [];
  while (!isFull(host, port)) {
    const filler = connect({ host, port });
    filler.on('error', () => {});
    fillers.push(filler);
    // One that comes when the last place has just been taken is dropped like all that follow.
    await until(() => !filler.connecting || isFull(host, port));
  }
  return {
    async [Symbol.asyncDispose]() {
      for (const filler of fillers) filler.destroy();
      await worker.terminate();
    },
  };
}
