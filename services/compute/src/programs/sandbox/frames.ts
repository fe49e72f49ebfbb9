import { AppError } from '@skerry/protocol';
import { PROGRAM_LIMITS } from '../limits.ts';

/**
 * What compute node and runtime tell each other: two lengths (big-endian, 4 bytes each), a head in JSON, a body of bytes.
 * What comes from the inside is written by strangers.
 */
export interface Frame {
  readonly head: Readonly<Record<string, unknown>>;
  readonly body: Buffer;
}

const PREFIX_BYTES = 8;

export function renderFrame(
  head: Readonly<Record<string, unknown>>,
  body: Uint8Array = Buffer.alloc(0),
): Buffer {
  const text = Buffer.from(JSON.stringify(head));
  const prefix = Buffer.alloc(PREFIX_BYTES);
  prefix.writeUInt32BE(text.length, 0);
  prefix.writeUInt32BE(body.length, 4);
  return Buffer.concat([prefix, text, body]);
}

const broken = () => new AppError('PROGRAM_CRASHED', 'the program broke the channel to its runtime');

function parseHead(bytes: Buffer): Frame['head'] {
  let head: unknown;
  try {
    head = JSON.parse(bytes.toString('utf8'));
  } catch {
    head = undefined;
  }
  if (typeof head !== 'object' || head === null || Array.isArray(head)) throw broken();
  return head as Frame['head'];
}

/** Puts frames together again, however they are cut. */
export class FrameReader {
  #parts: Buffer[] = [];
  #sizeBytes = 0;

  /** @throws AppError PROGRAM_OUTPUT_TOO_LARGE, PROGRAM_CRASHED for what is no frame; nothing can be read after that */
  push(chunk: Buffer): Frame[] {
    this.#parts.push(chunk);
    this.#sizeBytes += chunk.length;
    const frames: Frame[] = [];
    for (let frame = this.#take(); frame; frame = this.#take()) frames.push(frame);
    if (this.#parts.length > PROGRAM_LIMITS.framePieces) throw broken();
    return frames;
  }

  #take(): Frame | undefined {
    if (this.#sizeBytes < PREFIX_BYTES) return undefined;
    const prefix = this.#peek(PREFIX_BYTES);
    const [headBytes, bodyBytes] = [prefix.readUInt32BE(0), prefix.readUInt32BE(4)];
    if (headBytes > PROGRAM_LIMITS.frameHeadBytes || bodyBytes > PROGRAM_LIMITS.outputBytes) {
      throw new AppError(
        'PROGRAM_OUTPUT_TOO_LARGE',
        `the program's answer is larger than ${PROGRAM_LIMITS.outputBytes} bytes`,
      );
    }
    const total = PREFIX_BYTES + headBytes + bodyBytes;
    if (this.#sizeBytes < total) return undefined;
    const all = this.#peek(total);
    if (all.length > total) this.#parts[0] = all.subarray(total);
    else this.#parts.shift();
    this.#sizeBytes -= total;
    return {
      head: parseHead(all.subarray(PREFIX_BYTES, PREFIX_BYTES + headBytes)),
      body: Buffer.from(all.subarray(PREFIX_BYTES + headBytes, total)),
    };
  }

  /** The first piece; all that is there is put into it if it has fewer bytes than asked for. */
  #peek(bytes: number): Buffer {
    if (this.#parts[0]!.length < bytes) this.#parts = [Buffer.concat(this.#parts)];
    return this.#parts[0]!;
  }
}
