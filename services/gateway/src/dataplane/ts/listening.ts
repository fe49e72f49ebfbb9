import { once } from 'node:events';
import type { AddressInfo, Server } from 'node:net';

/** Connections that wait to be accepted. */
const BACKLOG = 4096;
/** Tries to find a port that is free on every address, where the system chooses. */
const MAX_PORT_TRIES = 10;
const DRAIN_POLL_MS = 25;

export interface Listener {
  readonly server: Server;
  /** What is open. */
  readonly connections: { readonly size: number } & Iterable<{ destroy(): unknown }>;
}

/**
 * Whether others may listen on the same port: nobody, those who share it now, or those who come later. The last fails where
 * somebody listens already, and lets a gateway that replaces this one listen before this one ends.
 */
export type PortUse = 'alone' | 'shared' | 'shared_later';

async function open(server: Server, host: string, port: number, use: PortUse): Promise<number> {
  server.listen({ host, port, backlog: BACKLOG, reusePort: use === 'shared' });
  await once(server, 'listening');
  const { port: actual } = server.address() as AddressInfo;
  if (use !== 'shared_later') return actual;
  await shut({ server, connections: new Set() });
  return await open(server, host, actual, 'shared');
}

/** All servers on one port, each on its address; with none open where that fails. */
export async function openTogether(
  servers: readonly Server[],
  hosts: readonly string[],
  port: number,
  use: PortUse,
): Promise<number> {
  for (let tries = 1; ; tries++) {
    let actual = port;
    try {
      for (const [index, host] of hosts.entries()) actual = await open(servers[index]!, host, actual, use);
      return actual;
    } catch (error) {
      await Promise.all(servers.map((server) => shut({ server, connections: new Set() })));
      const taken = (error as NodeJS.ErrnoException).code === 'EADDRINUSE';
      if (port !== 0 || !taken || tries === MAX_PORT_TRIES) throw error;
    }
  }
}

export const countConnections = (listeners: readonly Listener[]) =>
  listeners.reduce((sum, { connections }) => sum + connections.size, 0);

export async function shut({ server, connections }: Listener): Promise<void> {
  const closed = server.listening ? once(server, 'close') : undefined;
  server.close();
  for (const connection of connections) connection.destroy();
  await closed;
}

/** Stops listening, and waits until nothing is open or the time is over. `release` ends what is open and idle. */
export async function drainListeners(
  listeners: readonly Listener[],
  timeoutMs: number,
  release: () => void = () => {},
): Promise<void> {
  const end = performance.now() + timeoutMs;
  for (const { server } of listeners) if (server.listening) server.close();
  for (release(); countConnections(listeners) > 0 && performance.now() < end; release())
    await new Promise((resolve) => setTimeout(resolve, DRAIN_POLL_MS));
}
