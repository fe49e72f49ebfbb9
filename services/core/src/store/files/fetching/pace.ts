import type { Readable } from 'node:stream';
import { AppError } from '@skerry/protocol';

/** A stream of which nothing comes for so long is ended. */
const IDLE_MS = 30_000;
const MINUTE_MS = 60_000;

export interface PaceOptions {
  /** Whose it is, for whoever reads why it was ended. */
  readonly from: string;
  /** How long a stream may be slow, in minutes. */
  readonly minutes: number;
  /** In each minute on average, in bytes; asked for when they have passed. */
  readonly leastBytes: () => number;
  /** Told how many bytes came. */
  readonly onBytes?: (count: number) => void;
}

/** Ends a stream that stands still, and one of which less than the least comes, until it is disposed of. */
export function watchPace(stream: Readable, options: PaceOptions): Disposable {
  const { from, minutes, leastBytes, onBytes } = options;
  let passed = 0;
  const end = (what: string) => stream.destroy(new AppError('UPSTREAM_UNAVAILABLE', `${from} ${what}`));
  const stopped = () => end('stopped sending');
  let idle = setTimeout(stopped, IDLE_MS);
  const slow = setInterval(() => {
    if (passed < minutes * leastBytes()) end('sends too slowly');
    passed = 0;
  }, minutes * MINUTE_MS).unref();
  const note = (chunk: Buffer) => {
    passed += chunk.length;
    onBytes?.(chunk.length);
    clearTimeout(idle);
    idle = setTimeout(stopped, IDLE_MS);
  };
  stream.on('data', note);
  // Whoever reads it begins it.
  stream.pause();
  return {
    [Symbol.dispose]: () => {
      stream.off('data', note);
      clearTimeout(idle);
      clearInterval(slow);
    },
  };
}
