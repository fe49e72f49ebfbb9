import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Requests that one connection may have sent ahead of their answers (HTTP/1.1 pipelining). */
const MAX_WAITING_REQUESTS = 64;

interface Line {
  current: ServerResponse | undefined;
  readonly waiting: { response: ServerResponse; serve: () => void }[];
}

/**
 * Requests of one connection are served one after the other: pipelining must not multiply connections to instances, and
 * their answers must come in order.
 */
export class RequestTurns {
  readonly #lines = new WeakMap<Socket, Line>();

  /** The response under way on this connection. */
  current(socket: Socket): ServerResponse | undefined {
    return this.#lines.get(socket)?.current;
  }

  /** Whether this connection has had any request. */
  has(socket: Socket): boolean {
    return this.#lines.has(socket);
  }

  take(socket: Socket, response: ServerResponse, serve: () => void): void {
    const line = this.#lines.get(socket) ?? { current: undefined, waiting: [] };
    this.#lines.set(socket, line);
    if (line.waiting.length >= MAX_WAITING_REQUESTS) {
      socket.destroy();
      return;
    }
    line.waiting.push({ response, serve });
    if (!line.current) this.#next(socket, line);
  }

  #next(socket: Socket, line: Line): void {
    const turn = socket.destroyed ? undefined : line.waiting.shift();
    line.current = turn?.response;
    if (!turn) return;
    turn.response.once('close', () => this.#next(socket, line));
    turn.serve();
  }
}
