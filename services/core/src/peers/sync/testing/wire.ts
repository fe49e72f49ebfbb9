import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A way from one node to another that can be cut. */
export interface Wire extends AsyncDisposable {
  readonly url: string;
  /** Ends what is on its way and lets nothing through, until it is mended. */
  cut(): void;
  mend(): void;
}

/** @param findTarget where the other node is at this moment */
export async function createWire(findTarget: () => string | undefined): Promise<Wire> {
  const sockets = new Set<Socket>();
  let isCut = false;
  const server = createServer((socket) => {
    const target = findTarget();
    if (isCut || target === undefined) {
      socket.destroy();
      return;
    }
    const { hostname, port } = new URL(target);
    const other = connect(Number(port), hostname);
    for (const one of [socket, other]) {
      sockets.add(one);
      one.on('error', () => {});
      one.on('close', () => {
        sockets.delete(one);
        socket.destroy();
        other.destroy();
      });
    }
    socket.pipe(other).pipe(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cut() {
      isCut = true;
      for (const socket of sockets) socket.destroy();
    },
    mend() {
      isCut = false;
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
