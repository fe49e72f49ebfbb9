import type { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import type { onResponseHookHandler } from 'fastify';

/** What is still read of a body after the answer: a connection that is closed on somebody who is sending can lose the answer. */
interface Rest {
  readonly bytes: number;
  readonly ms: number;
}
const REST: Rest = { bytes: 1024 * 1024, ms: 5_000 };
/** Of a file: whoever sends one may have a fast line, and looks for the answer at its end. */
const REST_OF_FILE: Rest = { bytes: 64 * 1024 * 1024, ms: 5_000 };
/** Node reads it past everybody, so that nobody hears of each piece. */
const LOOK_MS = 50;

/** Ends the connection of a request that is answered, unless its body comes to an end soon. */
function endRest(raw: IncomingMessage, { bytes, ms }: Rest): void {
  const { socket } = raw;
  const [readBefore, beganMs] = [socket.bytesRead, performance.now()];
  const timer = setInterval(() => {
    const isOver = raw.complete || socket.destroyed;
    const isTooMuch = socket.bytesRead - readBefore > bytes || performance.now() - beganMs > ms;
    if (!isOver && !isTooMuch) return;
    clearInterval(timer);
    if (!isOver) socket.destroy();
  }, LOOK_MS).unref();
}

/** A hook: nobody has a body read for as long as it likes that nobody wants, as that of a GET, or of what was refused. */
export const endUnwanted: onResponseHookHandler = ({ raw, routeOptions }, _reply, done) => {
  // What is asked from within the process has no connection.
  if (!raw.complete && raw.socket instanceof Socket && !raw.socket.destroyed)
    endRest(raw, routeOptions.config?.watchesItsBody ? REST_OF_FILE : REST);
  done();
};
