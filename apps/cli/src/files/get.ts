import { createHash, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { open, unlink } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { fileHashOf } from '@skerry/client/core-client';
import { renameDurably } from '@skerry/kit/files';
import { AppError, parseItemHash } from '@skerry/protocol/forms';
import type { Context } from '../context.ts';
import type { Progress } from '../output/progress.ts';
import { renderBytes } from '../output/text.ts';

export interface FileGetOptions {
  readonly output?: string;
}

type Write = (chunk: Uint8Array) => Promise<void>;

/**
 * Passes the bytes on and checks them against their name. What was written is only good when this resolves.
 * @returns the number of bytes
 * @throws AppError FILE_CORRUPT, UPSTREAM_UNAVAILABLE (the connection broke)
 */
export async function copyVerified(
  body: AsyncIterable<Uint8Array>,
  hash: string,
  write: Write,
  onBytes: (bytes: number) => void = () => {},
): Promise<number> {
  const digest = createHash('sha256');
  let bytes = 0;
  const source = body[Symbol.asyncIterator]();
  for (;;) {
    const next = await source.next().catch((error: unknown) => {
      throw new AppError('UPSTREAM_UNAVAILABLE', `the connection was lost after ${renderBytes(bytes)}`, {
        cause: error,
      });
    });
    if (next.done) break;
    digest.update(next.value);
    bytes += next.value.length;
    await write(next.value);
    onBytes(bytes);
  }
  const actual = digest.digest('hex');
  if (actual !== hash)
    throw new AppError('FILE_CORRUPT', `the node sent the wrong bytes for ${hash}: their hash is ${actual}`);
  return bytes;
}

/** The file appears under its name when all of it is there and right. */
async function writeToFile(path: string, copy: (write: Write) => Promise<number>): Promise<number> {
  const draft = `${path}.${randomUUID()}.part`;
  const file = await open(draft, 'wx').catch((error: NodeJS.ErrnoException) => {
    throw new AppError('INVALID_PARAMETERS', `cannot write ${path} (${error.code})`);
  });
  try {
    const bytes = await copy(async (chunk) => {
      await file.writeFile(chunk);
    });
    await file.sync();
    await file.close();
    await renameDurably(draft, path);
    return bytes;
  } catch (error) {
    await file.close().catch(() => {});
    await unlink(draft).catch(() => {});
    throw error;
  }
}

const bodyOf = (response: Response): AsyncIterable<Uint8Array> => response.body ?? Readable.from([]);

/** Writes a response to a new file and checks it. Throws what copyVerified does. */
export async function writeVerified(
  response: Response,
  hash: string,
  path: string,
  onBytes: (bytes: number) => void,
): Promise<number> {
  return writeToFile(path, (write) => copyVerified(bodyOf(response), hash, write, onBytes));
}

async function writeTo(stream: NodeJS.WriteStream, chunk: Uint8Array): Promise<void> {
  if (!stream.write(chunk)) await once(stream, 'drain');
}

export async function getFile(context: Context, text: string, options: FileGetOptions): Promise<void> {
  const { reader, output } = context;
  const asked = parseItemHash(text);
  using progress: Progress = output.progress();
  const response = await reader.getFile(asked);
  const hash = fileHashOf(response, asked);
  const total = Number(response.headers.get('content-length') ?? 0);
  const show = (bytes: number) => {
    const of = total > 0 ? ` of ${renderBytes(total)}` : '';
    progress.show(`${renderBytes(bytes)}${of}`);
  };
  const isTerminal = output.stderr.isTTY === true;
  const copy = (write: Write) => copyVerified(bodyOf(response), hash, write, isTerminal ? show : undefined);
  if (options.output === undefined) {
    await copy((chunk) => writeTo(output.stdout, chunk));
    return;
  }
  const path = options.output;
  const bytes = await writeToFile(path, copy);
  progress[Symbol.dispose]();
  output.result({ file_hash: hash, path, size: bytes }, `${path}: ${renderBytes(bytes)}`);
}
