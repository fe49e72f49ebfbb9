import type { Http2Session } from 'node:http2';
import type { Socket } from 'node:net';
import { cutOff } from '../cut-off.ts';
import { LINGER_MS } from '../linger.ts';

/**
 * Ends a session with a last word. Node closes its socket only once the peer has taken all that was written, however long that takes:
 * who does not take it in time loses the connection with a reset.
 */
export function endSession(session: Http2Session, socket: Socket): void {
  session.destroy();
  if (socket.destroyed) return;
  const timer = setTimeout(() => cutOff(socket), LINGER_MS);
  socket.once('close', () => clearTimeout(timer));
}
