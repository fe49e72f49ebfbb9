import type { IncomingHttpHeaders, IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';
import { AppError } from '@skerry/protocol/forms';
import type { Framing } from './framing.ts';
import { endWith } from './refusals.ts';
import { continueWhenRead } from './unwanted.ts';

const isHost = (name: string | undefined) => name?.length === 4 && name.toLowerCase() === 'host';

function countHosts({ rawHeaders }: IncomingMessage): number {
  let count = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) if (isHost(rawHeaders[index])) count++;
  return count;
}

/**
 * One Host header, as RFC 9112, section 3.2, asks of everybody but clients of HTTP/1.0: Node takes more, and would refuse none without
 * a body (`requireHostHeader`). Throws INVALID_PARAMETERS.
 */
export function checkHost(request: IncomingMessage): void {
  const count = countHosts(request);
  if (count === 1 || (count === 0 && request.httpVersion === '1.0')) return;
  throw new AppError('INVALID_PARAMETERS', `a request has one Host header, not ${count}`);
}

/** Of bytes as they are. */
const NO_CODINGS = ['', 'identity'];

/**
 * Why a body is not read that is compressed (RFC 9110, section 8.4): as it came it is no JSON, and a file has another hash than its
 * sender knows. null: it is not.
 */
export function whyCoded({ 'content-encoding': coding = '' }: IncomingHttpHeaders): AppError | null {
  if (NO_CODINGS.includes(coding.trim().toLowerCase())) return null;
  return new AppError(
    'UNSUPPORTED_MEDIA_TYPE',
    'the body must not be compressed: send it as it is, without the header content-encoding',
  );
}

/** What Node would answer without saying why. @param refused told of what is not taken */
export function answerOddRequests(
  server: Server,
  framing: Framing,
  refused: (error: AppError) => void,
): void {
  // RFC 9110, section 10.1.1, leaves it to a server whether it refuses an expectation that it does not know.
  server.on('checkExpectation', (request, response) => server.emit('request', request, response));
  server.on('checkContinue', (request, response) => {
    continueWhenRead(request, response);
    server.emit('request', request, response);
  });
  server.on('connect', (request, socket: Socket) => {
    socket.on('error', () => {});
    // Node hands it over at once, whatever is under way.
    if (framing.endsBehind(request.socket)) return;
    const refusal = new AppError('INVALID_PARAMETERS', 'this server is no proxy: it takes no CONNECT');
    endWith(refusal, socket);
    refused(refusal);
  });
}
