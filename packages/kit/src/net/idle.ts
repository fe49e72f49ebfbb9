import type { Agent } from 'node:http';
import type { Duplex } from 'node:stream';

/**
 * Bounds the idle connections of an agent, of all places together: Node bounds those of each place, and names cost a stranger nothing, so
 * that thousands of them would take every descriptor of the process. The one that has been idle longest makes room.
 */
export function boundIdle<A extends Agent>(agent: A, max: number): A {
  const idle = new Set<Duplex>();
  const known = new WeakSet<Duplex>();
  const keep = agent.keepSocketAlive.bind(agent) as (socket: Duplex) => unknown;
  const reuse = agent.reuseSocket.bind(agent);
  agent.keepSocketAlive = (socket: Duplex) => {
    if (keep(socket) === false) return false;
    if (!known.has(socket)) {
      known.add(socket);
      socket.once('close', () => idle.delete(socket));
    }
    idle.add(socket);
    const [oldest] = idle;
    if (idle.size > max && oldest) {
      idle.delete(oldest);
      oldest.destroy();
    }
    return true;
  };
  agent.reuseSocket = (socket, request) => {
    idle.delete(socket);
    reuse(socket, request);
  };
  return agent;
}
