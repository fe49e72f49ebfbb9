import { createServer, type Server } from 'node:net';
import { HandleWire } from './handle-wire.ts';
import { LINGER_MS } from './linger.ts';
import { SocketWire } from './socket-wire.ts';
import { Stages } from './stages.ts';
import { acceptHandles, type TcpHandles } from './tcp-handles.ts';
import { TlsConnection, type TlsContext, type TlsOptions } from './tls-connection.ts';
import type { Wire, WireOwner } from './wire.ts';

export interface TlsListener {
  readonly server: Server;
  readonly connections: { readonly size: number; [Symbol.iterator](): Iterator<TlsConnection> };
}

/**
 * A server that reads the server name of each connection and passes the bytes, untouched, to the instance of that name.
 * @param handles what carries them; null for Node's own sockets
 */
export function createTlsListener(options: TlsOptions, handles: TcpHandles | null): TlsListener {
  const { limits } = options;
  const stages = new Stages<TlsConnection>({
    undecided: limits.helloTimeoutMs,
    connecting: limits.connectTimeoutMs,
    open: limits.idleTimeoutMs,
    lingering: LINGER_MS,
  });
  const context: TlsContext = {
    ...options,
    stages,
    connect: handles
      ? (ipv6, port, owner) => HandleWire.connect(handles, ipv6, port, owner)
      : (ipv6, port, owner) => SocketWire.connect(ipv6, port, owner),
  };
  const accept = (wireOf: (owner: WireOwner) => Wire) => new TlsConnection(context, wireOf).start();
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) =>
    accept((owner) => new SocketWire(socket, owner)),
  );
  if (handles)
    server.on('listening', () =>
      acceptHandles(server, (handle) => accept((owner) => new HandleWire(handles, handle, owner))),
    );
  return { server, connections: stages };
}
