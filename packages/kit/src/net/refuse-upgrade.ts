import type { ClientRequest } from 'node:http';

/**
 * Makes an answer of status 101, which nobody asked for (RFC 9110, 15.2.2), the end of its request like any failure. Without it
 * Node closes the connection and tells nobody: there is neither an answer nor an error, and aborting the request does nothing any more.
 */
export function refuseUpgrade(request: ClientRequest): void {
  request.once('upgrade', (_answer, socket) => {
    socket.destroy();
    request.emit('error', new Error('answered 101, unasked'));
  });
}
