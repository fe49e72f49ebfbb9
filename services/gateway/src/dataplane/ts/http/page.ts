import { type IncomingMessage, ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { ERRORS, type ErrorCode } from '@skerry/protocol';
import type { Explanation } from '../../port.ts';
import { linger } from '../linger.ts';

export const NOT_HTTP: Explanation = {
  code: 'INVALID_PARAMETERS',
  message: 'This is not a valid HTTP request.',
};

/** The small plain page that says why a request was not served. */
export function pageOf(explanation: Explanation): { status: number; headers: string[]; body: string } {
  const status = ERRORS[explanation.code].httpStatus;
  const body = `${status} ${STATUS_CODES[status]}\n\n${explanation.message}\n\n${explanation.code}\n`;
  const headers = [
    'Content-Type',
    'text/plain; charset=utf-8',
    'Content-Length',
    String(Buffer.byteLength(body)),
  ];
  headers.push('Cache-Control', 'no-store', 'X-Content-Type-Options', 'nosniff');
  return { status, headers, body };
}

/** The code of the page that a response was answered with. */
const pages = new WeakMap<object, ErrorCode>();
export const notePage = (response: object, { code }: Explanation) => void pages.set(response, code);
export const findPage = (response: object): ErrorCode | undefined => pages.get(response);

export function sendPage(response: ServerResponse, explanation: Explanation): void {
  notePage(response, explanation);
  const { status, headers, body } = pageOf(explanation);
  response.writeHead(status, STATUS_CODES[status]!, headers);
  response.end(body);
}

/** For a socket that Node's HTTP server has let go of, or never understood: the page, then the end. */
export function endWithPage(socket: Socket, explanation: Explanation): void {
  const { status, headers, body } = pageOf(explanation);
  const lines = headers.flatMap((name, index) => (index % 2 === 0 ? [`${name}: ${headers[index + 1]}`] : []));
  const head = [`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...lines, 'Connection: close'];
  socket.write(`${head.join('\r\n')}\r\n\r\n${body}`);
  endQuietly(socket);
}

/** Ends our side, and gives the client the time to read what was written. */
export function endQuietly(socket: Socket): void {
  socket.end();
  // What still comes is not for a parser any more.
  socket.removeAllListeners('data');
  linger(socket, () => socket.destroy());
}

/** A response on a socket that was handed over for an upgrade that did not happen. Ends the connection. */
export function responseOn(socket: Socket, request: IncomingMessage): ServerResponse {
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false;
  response.assignSocket(socket);
  response.once('finish', () => {
    response.detachSocket(socket);
    socket.end();
    linger(socket, () => socket.destroy());
  });
  return response;
}
