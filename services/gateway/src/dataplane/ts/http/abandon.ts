import type { OutgoingMessage } from 'node:http';
import { cutOff } from '../cut-off.ts';
import type { Stalls } from '../stalls/stalls.ts';

/**
 * Ends a request whose answer nobody waits for. What its instance has not taken of it would be the kernel's for minutes, up to 4 MB, and
 * count as nobody's: one that is not whole is reset, which frees that. One that is whole still comes, unless TCP has much.
 * @param upstream the request to the instance
 */
export function abandon(upstream: OutgoingMessage, stalls: Stalls): void {
  // What is over may have left its connection to another request.
  if (upstream.destroyed) return;
  const { socket } = upstream;
  // Node would reset one that is still opening once it is open.
  if (socket && !socket.connecting && (!upstream.writableFinished || stalls.mayOwe(socket))) cutOff(socket);
  upstream.destroy();
}
