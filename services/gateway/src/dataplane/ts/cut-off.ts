import type { Socket } from 'node:net';

/**
 * Ends a connection at once, with a reset where that is possible. Not where its end is under way: libuv refuses to reset
 * such a socket (uv_tcp_close_reset, EINVAL), and Node then never closes it, nor ends.
 */
export function cutOff(socket: Socket): void {
  if (socket.destroyed) return;
  if (socket.writableEnded) socket.destroy();
  else socket.resetAndDestroy();
}
