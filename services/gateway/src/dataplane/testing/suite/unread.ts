import type { Writable } from 'node:stream';
import { readTcpQueues } from '../../ts/stalls/queues.ts';

const ZEROS = Buffer.alloc(65_536);
const MUCH_BYTES = 256 * 1024;

/** Sends as much as the other side takes. */
export function pour(sink: Writable): void {
  const more = () => {
    while (!sink.destroyed && sink.write(ZEROS));
  };
  sink.on('drain', more);
  more();
}

/** Whether the kernel keeps much for those who listen on a port. */
export async function isOwed(port: number): Promise<boolean> {
  const end = `:${port.toString(16).padStart(4, '0').toUpperCase()}`;
  const { bySocket } = await readTcpQueues();
  return [...bySocket].some(([key, { unsent }]) => key.endsWith(end) && unsent > MUCH_BYTES);
}
