import { Readable } from 'node:stream';
import { AppError } from '@skerry/protocol';

export const timedOut = (what: string, timeoutMs: number) =>
  new AppError('IPFS_TIMEOUT', `${what}: no data for ${timeoutMs} ms`);

/** A signal that ends when nothing was noted for too long. */
export interface IdleWatch extends Disposable {
  readonly signal: AbortSignal;
  /** Something came. */
  note(): void;
}

/** Silence is measured in so many steps: where this process itself stood still for a while, that is one of them. */
const STEPS = 8;

export function watchIdle(what: string, timeoutMs: number): IdleWatch {
  const controller = new AbortController();
  let steps = 0;
  const timer = setInterval(() => {
    // The first one may have begun before the last that came.
    if (++steps <= STEPS) return;
    clearInterval(timer);
    controller.abort(timedOut(what, timeoutMs));
  }, timeoutMs / STEPS);
  return {
    signal: controller.signal,
    note() {
      steps = 0;
    },
    [Symbol.dispose]: () => clearInterval(timer),
  };
}

/** What a reader takes counts once all of a piece has left (api/shares/flows.ts): who takes less than one in a minute or two takes nothing. */
const PIECE_BYTES = 64 * 1024;

/** The bytes of a source as a stream; `onEnd` runs once, however it ends. One that is read slowly is no idle one. */
export function streamOf(source: AsyncIterable<Uint8Array>, onEnd: () => void): Readable {
  const pieces = async function* () {
    for await (const bytes of source)
      for (let at = 0; at < bytes.length; at += PIECE_BYTES) yield bytes.subarray(at, at + PIECE_BYTES);
  };
  const stream = Readable.from(pieces(), { objectMode: false, highWaterMark: 256 * 1024 });
  stream.once('close', onEnd);
  return stream;
}

/** For what is done once all of a file is here, which its sender may no longer wait for: each step ends by itself. */
export const toTheEnd = (): AbortSignal => new AbortController().signal;
