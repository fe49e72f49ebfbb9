import type { Readable } from 'node:stream';

/** What a peer may still send after our last word, so that it gets to read that word. */
export const LINGER_BYTES = 1024 * 1024;
export const LINGER_MS = 2_000;

/**
 * Reads and drops what still comes, then calls `giveUp` if it is too much or takes too long. Closing with unread bytes
 * would make the kernel reset the connection, and the peer could lose our answer.
 */
export function linger(source: Readable, giveUp: () => void): void {
  let left = LINGER_BYTES;
  const timer = setTimeout(giveUp, LINGER_MS);
  source.on('data', (chunk: Uint8Array) => {
    left -= chunk.length;
    if (left < 0) giveUp();
  });
  source.once('end', () => clearTimeout(timer)).once('close', () => clearTimeout(timer));
  source.resume();
}
