import type { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { FastifyReply, onResponseHookHandler, onSendHookHandler } from 'fastify';

/** What is still read of a body after the answer: a connection that is closed on somebody who is sending can lose the answer. */
const REST = { bytes: 1024 * 1024, ms: 5_000 } as const;
/** Node reads it past everybody, so that nobody hears of each piece. */
const LOOK_MS = 50;

/** Of those that wait for a 100 before they send a body: has it read without. */
const waiting = new WeakMap<IncomingMessage, () => void>();

/**
 * Says 100 to whoever asks for it (RFC 9110, section 10.1.1) when its body begins to be read, and not before: of what is refused without a
 * look at the body nothing is sent. Such an answer ends the connection, since nobody knows whether the body follows: many wait for a second
 * and send it then.
 */
export function continueWhenRead(request: IncomingMessage, response: ServerResponse): void {
  const { shouldKeepAlive } = response;
  response.shouldKeepAlive = false;
  const read = request._read;
  const readWithout = () => {
    request._read = read;
    waiting.delete(request);
  };
  waiting.set(request, readWithout);
  request._read = (size) => {
    readWithout();
    if (!response.headersSent) {
      response.shouldKeepAlive = shouldKeepAlive;
      response.writeContinue();
    }
    read.call(request, size);
  };
}

/** Answers to whose bodies somebody goes on reading. */
const ending = new WeakSet<ServerResponse>();

/**
 * Has an answer end its connection, whatever is left of the body, which its reader may go on with for as long: nothing behind it is done
 * (framing.ts).
 */
export const endsWithAnswer = ({ raw }: FastifyReply): void => {
  raw.shouldKeepAlive = false;
  ending.add(raw);
};

/** Ends the connection of a request that is answered, unless its body comes to an end soon. */
function endRest(raw: IncomingMessage): void {
  const { socket } = raw;
  const [readBefore, beganMs] = [socket.bytesRead, performance.now()];
  const timer = setInterval(() => {
    const isOver = raw.complete || socket.destroyed;
    const isTooMuch = socket.bytesRead - readBefore > REST.bytes || performance.now() - beganMs > REST.ms;
    if (!isOver && !isTooMuch) return;
    clearInterval(timer);
    if (!isOver) socket.destroy();
  }, LOOK_MS).unref();
}

/** Watches over the rest of a body behind the answer. @param tooMuch called where there is more of it than is read */
function boundRest(raw: IncomingMessage, tooMuch: () => void): void {
  let left: number = REST.bytes;
  const timer = setTimeout(() => raw.socket.destroy(), REST.ms).unref();
  for (const event of ['end', 'close']) raw.once(event, () => clearTimeout(timer));
  raw.on('data', (chunk: Buffer) => {
    left -= chunk.length;
    if (left < 0) tooMuch();
  });
}

/** Reads on a little behind the answer, and no more after that: the sender stands still, sees the answer, and hangs up. */
function readOn(raw: IncomingMessage): void {
  boundRest(raw, () => raw.pause());
  raw.resume();
}

/** Has Node end a connection by halves (RFC 9112, section 9.6): closed on somebody who is sending, it can lose the answer. */
function endByHalves(socket: Socket): void {
  socket.destroySoon = () => {
    socket.end();
    const timer = setTimeout(() => socket.destroy(), REST.ms).unref();
    socket.once('close', () => clearTimeout(timer));
  };
}

const isSending = ({ raw }: { readonly raw: IncomingMessage }) =>
  // What is asked from within the process has no connection.
  !raw.complete && raw.socket instanceof Socket && !raw.socket.destroyed;

/** A hook: nobody has a body read for as long as it likes that nobody wants, as that of a GET, or of what was refused. */
export const endUnwanted: onResponseHookHandler = (request, _reply, done) => {
  if (isSending(request) && !request.routeOptions.config?.watchesItsBody) endRest(request.raw);
  done();
};

/** Has nobody read a body any more, not even Node. The answer ends the connection where too much of it is to come. */
function stopReading(raw: IncomingMessage, response: ServerResponse, readWithout?: () => void): void {
  readWithout?.();
  raw.unpipe();
  // Else Node would read on by itself, without an end.
  raw.read(0);
  const announced = Number(raw.headers['content-length'] ?? Number.POSITIVE_INFINITY);
  if (announced > REST.bytes) response.shouldKeepAlive = false;
}

/**
 * A hook: the same of the body of a file. Whoever sends one may have a fast line, and looks for the answer at its end. Where all of the
 * body comes soon, the connection goes on, unless it was to end with the answer. Whoever waits for a 100 may have given up waiting.
 */
export const leaveUnwanted: onSendHookHandler = (request, reply, _payload, done) => {
  const { raw, routeOptions } = request;
  const readWithout = waiting.get(raw);
  const isFile = routeOptions.config?.watchesItsBody === true;
  if (isSending(request) && (isFile || readWithout)) endByHalves(raw.socket);
  const isRead = ending.has(reply.raw);
  if (isSending(request) && isFile) {
    if (!isRead) stopReading(raw, reply.raw, readWithout);
    const bound = () => boundRest(raw, () => raw.socket.destroy());
    // Behind an answer that nobody reads this one never leaves: what comes of the body meanwhile counts, too.
    const isBehind = isRead && reply.raw.socket === null;
    if (isBehind) bound();
    reply.raw.once('finish', () => {
      if (!isSending(request)) return;
      if (!isRead) readOn(raw);
      else if (!isBehind) bound();
    });
  }
  done();
};
