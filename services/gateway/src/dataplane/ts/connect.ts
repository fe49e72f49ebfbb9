import { connect, type Socket } from 'node:net';
import type { RouteFailure } from '../port.ts';

export interface ConnectTarget {
  readonly ipv6: string;
  readonly port: number;
  readonly timeoutMs: number;
  /** Whether each direction may end by itself; otherwise the end of one ends both. */
  readonly halfOpen: boolean;
}

/** Where an instance does not take a connection in time, the socket's error is this. */
export class ConnectTimeoutError extends Error {
  override readonly name = 'ConnectTimeoutError';
}

/** A connection to an instance, still opening. It ends with a ConnectTimeoutError where it does not open in time. */
export function connectInstance(target: ConnectTarget): Socket {
  const socket = connect({
    host: target.ipv6,
    port: target.port,
    family: 6,
    noDelay: true,
    allowHalfOpen: target.halfOpen,
  });
  const timer = setTimeout(
    () => socket.destroy(new ConnectTimeoutError(`no connection within ${target.timeoutMs} ms`)),
    target.timeoutMs,
  );
  const settled = () => clearTimeout(timer);
  socket.once('connect', settled).once('close', settled);
  return socket;
}

/** What the error of a connection or request to an instance means to whoever asked. */
export function failureOf(error: Error): RouteFailure {
  if (error instanceof ConnectTimeoutError) return 'connect_timeout';
  switch ((error as NodeJS.ErrnoException).code) {
    case 'ECONNREFUSED':
      return 'refused';
    case 'ENETUNREACH':
    case 'EHOSTUNREACH':
    case 'EACCES':
      return 'unreachable';
    // All ports towards this instance are in use, or kept for a minute after their connections.
    case 'EADDRNOTAVAIL':
    case 'EMFILE':
    case 'ENFILE':
      return 'gateway_full';
    case 'ETIMEDOUT':
      return 'connect_timeout';
    default:
      return 'broken';
  }
}
