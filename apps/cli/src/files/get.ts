import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { AppError, isCid, parseItemHash } from '@skerry/protocol/forms';
import type { Context } from '../context.ts';
import type { Progress } from '../output/progress.ts';
import { renderBytes } from '../output/text.ts';
import { checkTarget, type Write, writeWhole } from './write-file.ts';

export interface FileGetOptions {
  readonly output?: string;
}

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
  try {
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
  } finally {
    // What nobody takes any more is not to keep its connection open, nor the command waiting for it.
    await source.return?.().catch(() => {});
  }
  const actual = digest.digest('hex');
  if (actual !== hash)
    throw new AppError('FILE_CORRUPT', `the node sent the wrong bytes for ${hash}: their hash is ${actual}`);
  return bytes;
}

const bodyOf = (response: Response): AsyncIterable<Uint8Array> => response.body ?? Readable.from([]);

/** Ends a response that was not read to its end, for whatever reason. */
const endOf = ({ body }: Response): AsyncDisposable => ({
  [Symbol.asyncDispose]: async () => body?.cancel().catch(() => {}),
});

/** Writes a response to a new file that only this person can read, and checks it. Throws what copyVerified does. */
export async function writeVerified(
  response: Response,
  hash: string,
  path: string,
  onBytes: (bytes: number) => void,
): Promise<number> {
  await using _ = endOf(response);
  return await writeWhole(path, (write) => copyVerified(bodyOf(response), hash, write, onBytes), 0o600);
}

export async function getFile(context: Context, text: string, options: FileGetOptions): Promise<void> {
  const { reader, output } = context;
  const asked = parseItemHash(text);
  if (options.output !== undefined) await checkTarget(options.output);
  using progress: Progress = output.progress();
  const { hash, response } = await reader.openFile(asked);
  await using _ = endOf(response);
  if (isCid(hash))
    throw new AppError(
      'INVALID_PARAMETERS',
      `${asked} keeps ${hash}, a file of IPFS, which cannot be verified here: an IPFS client can fetch it`,
    );
  const total = Number(response.headers.get('content-length') ?? 0);
  const show = (bytes: number) => {
    const of = total > 0 ? ` of ${renderBytes(total)}` : '';
    progress.show(`${renderBytes(bytes)}${of}`);
  };
  const isTerminal = output.stderr.isTTY === true;
  const copy = (write: Write) => copyVerified(bodyOf(response), hash, write, isTerminal ? show : undefined);
  if (options.output === undefined) {
    await copy((chunk) => output.bytes(chunk));
    return;
  }
  const path = options.output;
  const bytes = await writeWhole(path, copy);
  progress[Symbol.dispose]();
  output.result({ file_hash: hash, path, size: bytes }, `${path}: ${renderBytes(bytes)}`);
}
