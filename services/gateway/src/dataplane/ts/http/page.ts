import { type IncomingMessage, ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { PAGE_HEADERS, renderNotice, wantsPage } from '@skerry/kit';
import { ERRORS, type ErrorBody, type ErrorCode } from '@skerry/protocol';
import type { Explanation } from '../../port.ts';
import { linger } from '../linger.ts';

export const NOT_HTTP: Explanation = {
  code: 'INVALID_PARAMETERS',
  message: 'This is not a valid HTTP request.',
};

/** Tells an answer of the gateway itself from an instance's, also where there is no body (HEAD). */
const CODE_HEADER = 'net-gateway-error';

/** What whoever sees the page can do, where that is not what the message says already. */
const ADVICE: Partial<Record<ErrorCode, string>> = {
  HOSTNAME_NOT_FOUND: 'Check the spelling of the address.',
  INSTANCE_NOT_ROUTED: 'If it has just been created, reload this page in a minute.',
  INSTANCE_UNREACHABLE: 'If it has just been started, reload this page in a minute.',
  INSTANCE_TIMED_OUT: 'Reload this page in a minute.',
  OVERLOADED: 'Reload this page in a minute.',
};
const FOR_OWNERS =
  'If the instance is yours, `skerry domain why` and this host name say which step is missing.';
/** Of instances: what is wrong with the request itself is no business of their owners. */
const OF_INSTANCES: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'HOSTNAME_NOT_FOUND',
  'INSTANCE_NOT_ROUTED',
  'INSTANCE_UNREACHABLE',
  'INSTANCE_TIMED_OUT',
]);

function bodyOf({ code, message }: Explanation, heading: string, accept: string | undefined) {
  if (wantsPage(accept)) {
    const advice = [ADVICE[code], OF_INSTANCES.has(code) ? FOR_OWNERS : undefined];
    const sentences = [message, ...advice.filter((one) => one !== undefined), `Code: \`${code}\``];
    return { headers: PAGE_HEADERS, body: renderNotice(heading, sentences) };
  }
  if (accept?.includes('application/json')) {
    const error: ErrorBody = { error: message, status: 'error', code };
    return {
      headers: { 'content-type': 'application/json; charset=utf-8' },
      body: `${JSON.stringify(error)}\n`,
    };
  }
  return {
    headers: { 'content-type': 'text/plain; charset=utf-8' },
    body: `${heading}\n\n${message}\n\n${code}\n`,
  };
}

/**
 * The small page that says why a request was not served: HTML for browsers, an error body for programs that ask for JSON, else
 * plain text.
 * @param accept the header of the request, where there is one
 */
export function pageOf(
  explanation: Explanation,
  accept?: string,
): { status: number; headers: Record<string, string>; body: string } {
  const { code } = explanation;
  const status = ERRORS[code].httpStatus;
  const { headers, body } = bodyOf(explanation, `${status} ${STATUS_CODES[status]}`, accept);
  return {
    status,
    body,
    headers: {
      ...headers,
      'content-length': String(Buffer.byteLength(body)),
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      vary: 'accept',
      [CODE_HEADER]: code,
    },
  };
}

/** The code of the page that a response was answered with. */
const pages = new WeakMap<object, ErrorCode>();
export const notePage = (response: object, { code }: Explanation) => void pages.set(response, code);
export const findPage = (response: object): ErrorCode | undefined => pages.get(response);

export function sendPage(response: ServerResponse, explanation: Explanation): void {
  notePage(response, explanation);
  const { status, headers, body } = pageOf(explanation, response.req.headers.accept);
  response.writeHead(status, STATUS_CODES[status]!, headers);
  response.end(body);
}

/** For a socket that Node's HTTP server has let go of, or never understood: the page, then the end. */
export function endWithPage(socket: Socket, explanation: Explanation): void {
  const { status, headers, body } = pageOf(explanation);
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
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
