import type { Socket } from 'node:net';

/**
 * Ends a connection at once, with a reset where that is possible. Not where its end is on its way to the kernel: libuv refuses to reset
 * such a socket (uv_tcp_close_reset, EINVAL), Node holds it to be closing all the same, never closes it, and a process with
 * one such socket turns for ever when it should end (Node 26.10). So nothing here calls resetAndDestroy itself.
 */
export function cutOff(socket: Socket): void {
  if (socket.destroyed) return;
  if (socket.writableEnded && !socket.writableFinished) socket.destroy();
  else socket.resetAndDestroy();
}
