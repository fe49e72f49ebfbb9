import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

const POLL_MS = 100;

/** Polls until something is so. Rejects at the deadline, saying what was waited for. */
export async function until(
  what: string,
  deadlineMs: number,
  isSo: () => Promise<boolean> | boolean,
  everyMs = POLL_MS,
): Promise<void> {
  const deadline = Date.now() + deadlineMs;
  while (!(await isSo())) {
    if (Date.now() > deadline) throw new Error(`not in ${deadlineMs} ms: ${what}`);
    await delay(everyMs);
  }
}

/** Whether a TCP connection is established within the time. A refusal is an answer too, but not a connection. */
export function connects(host: string, port: number, limitMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    const finish = (result: boolean) => {
      clearTimeout(timer);
      socket.destroy();
      resolve(result);
    };
    const timer = setTimeout(() => finish(false), limitMs);
    socket.once('connect', () => finish(true));
    socket.once('error', () => finish(false));
  });
}
