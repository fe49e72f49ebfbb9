import { setImmediate as turn } from 'node:timers/promises';
import { AppError, SHARED_BYTES_MAX } from '@skerry/protocol';

/** Messages in a body: each with its length before it, 4 bytes, most significant first. */
const LENGTH_BYTES = 4;

/** Bytes of messages in one body; the last one may go beyond. */
export const FRAMES_BYTES = 4 * 1024 * 1024;
export const FRAMES_BODY_BYTES = FRAMES_BYTES + SHARED_BYTES_MAX + 1024 * 1024;

export function encodeFrames(texts: readonly string[]): Buffer {
  const frames = texts.map((text) => Buffer.from(text));
  const body = Buffer.allocUnsafe(frames.reduce((sum, { length }) => sum + LENGTH_BYTES + length, 0));
  let at = 0;
  for (const frame of frames) {
    at = body.writeUInt32BE(frame.length, at);
    at += frame.copy(body, at);
  }
  return body;
}

/** Text of frames that are written in one turn of the event loop, a matter of a millisecond. */
const CHARS_A_TURN = 256 * 1024;

/** The same for many megabytes: what others ask for comes in between. */
export async function encodeInTurns(texts: readonly string[]): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for (let from = 0; from < texts.length; ) {
    let to = from;
    for (let chars = 0; to < texts.length && chars < CHARS_A_TURN; to++) chars += texts[to]!.length;
    pieces.push(encodeFrames(texts.slice(from, to)));
    from = to;
    if (from < texts.length) await turn();
  }
  return pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces);
}

/** @throws AppError UPSTREAM_UNAVAILABLE for what no node of ours writes */
export function decodeFrames(body: Buffer, framesMax: number): Buffer[] {
  const frames: Buffer[] = [];
  for (let at = 0; at < body.length; ) {
    const length = at + LENGTH_BYTES <= body.length ? body.readUInt32BE(at) : Number.POSITIVE_INFINITY;
    at += LENGTH_BYTES;
    if (length > SHARED_BYTES_MAX || at + length > body.length || frames.length === framesMax)
      throw new AppError('PEER_MISBEHAVED', 'the peer sent something other than messages');
    frames.push(body.subarray(at, at + length));
    at += length;
  }
  return frames;
}
