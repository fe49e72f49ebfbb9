import type { IncomingHttpHeaders, IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { AppError } from '@skerry/protocol/forms';
import { endSoon, refuseResponse } from './refusals.ts';
import { requestIdOf } from './request-trace.ts';

/** Why nobody can tell where the body of a request ends, or what it says (RFC 9112, section 6.3). null: it is plain. */
function whyUnframed({ 'transfer-encoding': coding }: IncomingHttpHeaders): AppError | null {
  if (coding === undefined || coding.trim().toLowerCase() === 'chunked') return null;
  return new AppError(
    'INVALID_PARAMETERS',
    'the header transfer-encoding must be chunked, or left out: send a body with it or with content-length',
  );
}

/** All of it is sent, and HTTP has let go of the connection. */
const isOver = (response: ServerResponse) => response.writableFinished && response.socket === null;

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

/**
 * One answer for each request. Node hands over a request as its head arrives, and finds what is wrong with its body later: what it says
 * then would be read as the answer to the next request.
 */
export class Framing {
  readonly #last = new WeakMap<Socket, ServerResponse>();
  /** What is wrong is told for each packet that comes. */
  readonly #ending = new WeakSet<Socket>();

  /** To be called last: what nobody can read does not wait for its turn. @param refused told of what is not taken */
  watch(server: Server, refused: (error: AppError) => void): void {
    const handlers = server.listeners('request') as Handler[];
    server.removeAllListeners('request');
    server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      // The connection ends with the answer to the one before.
      if (this.#last.get(request.socket)?.shouldKeepAlive === false) return;
      this.#last.set(request.socket, response);
      const refusal = whyUnframed(request.headers);
      if (refusal) {
        response.shouldKeepAlive = false;
        refuseResponse(refusal, requestIdOf(request), response);
        refused(refusal);
      } else for (const handle of handlers) handle.call(server, request, response);
    });
  }

  /** Whether nothing is under way on a connection, and another request will be answered. */
  isFree(socket: Socket): boolean {
    const last = this.#last.get(socket);
    return !last || (last.shouldKeepAlive && isOver(last));
  }

  /**
   * Whether the connection ends without another word for what is wrong with it: it is the body of a request that is answered, or comes
   * behind a request that is under way, or after the last that will be.
   */
  endsAnswered(socket: Socket): boolean {
    const response = this.#last.get(socket);
    if (!response || this.#isBetween(response)) return false;
    if (!response.headersSent && !response.req.complete) {
      // Its own body: the refusal is its answer, unless answers to others come first.
      if (response.socket) return false;
      socket.destroy();
    } else if (isOver(response)) endSoon(socket);
    else if (!this.#ending.has(socket)) response.once('finish', () => endSoon(socket));
    this.#ending.add(socket);
    return true;
  }

  /** Ends a connection that HTTP has let go of while an answer was under way: nothing more of that answer is sent. */
  endsBehind(socket: Socket): boolean {
    const response = this.#last.get(socket);
    if (!response || this.#isBetween(response)) return false;
    if (response.writableEnded && (response.socket || isOver(response))) endSoon(socket);
    else socket.destroy();
    return true;
  }

  #isBetween(response: ServerResponse): boolean {
    return isOver(response) && response.req.complete && response.shouldKeepAlive;
  }
}
