import type { Server } from 'node:http';
import { clientKeyOf } from '../net/client-address.ts';
import { type ClientOptions, createExemption } from './client.ts';
import type { ShareLimits } from './shares.ts';
import { YieldingShares } from './yielding-shares.ts';

/** Open connections to one HTTP server. */
const CONNECTIONS: ShareLimits = { total: 20_000, reserve: 2_000, perClient: 4_096 };

/**
 * Connections have a share per client too: who sends nothing is counted by no rate, and each takes a descriptor and memory.
 * Behind a trusted proxy there are many clients, so that it has no share of its own. One too many is closed at once, or an old
 * one of a client that has many (yielding-shares.ts).
 * @param onLetGo called for each that is closed
 */
export function shareConnections(
  server: Server,
  clients: ClientOptions,
  { limits = CONNECTIONS, onLetGo }: { readonly limits?: ShareLimits; readonly onLetGo: () => void },
): void {
  const shares = new YieldingShares(limits);
  const isOurs = createExemption(clients, clients.trustedProxies);
  server.prependListener('connection', (socket) => {
    const address = socket.remoteAddress ?? '';
    const client = { key: clientKeyOf(address), isExempt: isOurs(address) };
    const close = () => {
      onLetGo();
      socket.destroy();
    };
    const held = shares.take(client, close);
    if (typeof held === 'string') close();
    else socket.once('close', () => held.release());
  });
}
