import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import type { CoreClient } from '@skerry/client/core-client';
import { AppError, isCid, parseItemHash } from '@skerry/protocol/forms';
import type { Context } from '../context.ts';
import type { Progress } from '../output/progress.ts';
import { renderBytes } from '../output/text.ts';
import { tellDrafts, type Write, writeWhole } from './write-file.ts';

export interface FileGetOptions {
  readonly output?: string;
}

/** Of a whole download. One that brings nothing more is ended after five minutes, by fetch. */
const DOWNLOAD_MS = 24 * 3_600_000;

type OnBytes = (bytes: number) => void;

/**
 * Passes the bytes on.
 * @returns their number
 * @throws AppError UPSTREAM_UNAVAILABLE (the connection broke), and what checks them says
 */
async function copyBytes(body: AsyncIterable<Uint8Array>, write: Write, onBytes: OnBytes): Promise<number> {
  let bytes = 0;
  const source = body[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = await source.next().catch((error: unknown) => {
        if (error instanceof AppError) throw error;
        throw new AppError('UPSTREAM_UNAVAILABLE', `the connection was lost after ${renderBytes(bytes)}`, {
          cause: error,
        });
      });
      if (next.done) return bytes;
      bytes += next.value.length;
      await write(next.value);
      onBytes(bytes);
    }
  } finally {
    // What nobody takes any more is not to keep its connection open, nor the command waiting for it.
    await source.return?.().catch(() => {});
  }
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
  onBytes: OnBytes = () => {},
): Promise<number> {
  const digest = createHash('sha256');
  const take: Write = (chunk) => {
    digest.update(chunk);
    return write(chunk);
  };
  const bytes = await copyBytes(body, take, onBytes);
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

/** A file on its way. */
interface Download extends AsyncDisposable {
  /** SHA-256 or CID of what is written once `copy` resolves. */
  readonly hash: string;
  /** 0 where nobody says. */
  readonly sizeBytes: number;
  copy(write: Write, onBytes?: OnBytes): Promise<number>;
}

/** Of IPFS: each piece is checked by the CID before it is written. */
async function openOfIpfs(reader: CoreClient, cid: string): Promise<Download> {
  const { openCidFile } = await import('./ipfs-file.ts');
  const { sizeBytes, bytes } = await openCidFile(
    {
      getFile: (hash) => reader.getFile(hash, DOWNLOAD_MS),
      getIpfsBlock: (hash) => reader.getIpfsBlock(hash),
    },
    cid,
  );
  return {
    ...{ hash: cid, sizeBytes },
    copy: (write, onBytes = () => {}) => copyBytes(bytes, write, onBytes),
    [Symbol.asyncDispose]: async () => {},
  };
}

function parseName(text: string): string {
  try {
    return isCid(text) ? text : parseItemHash(text);
  } catch (error) {
    const { details } = error as AppError;
    throw new AppError('INVALID_HASH', 'a file has 64 hexadecimal digits, or a CID (Qm… or bafy…)', {
      details,
    });
  }
}

async function openDownload(reader: CoreClient, asked: string): Promise<Download> {
  if (isCid(asked)) return openOfIpfs(reader, asked);
  const { hash, response } = await reader.openFile(asked, DOWNLOAD_MS);
  const end = endOf(response);
  if (isCid(hash)) {
    await end[Symbol.asyncDispose]();
    return openOfIpfs(reader, hash);
  }
  return {
    hash,
    sizeBytes: Number(response.headers.get('content-length') ?? 0),
    copy: (write, onBytes) => copyVerified(bodyOf(response), hash, write, onBytes),
    [Symbol.asyncDispose]: () => end[Symbol.asyncDispose](),
  };
}

export async function getFile(context: Context, text: string, options: FileGetOptions): Promise<void> {
  const { reader, output } = context;
  const asked = parseName(text);
  if (options.output !== undefined) await tellDrafts(options.output, output);
  using progress: Progress = output.progress();
  await using file = await openDownload(reader, asked);
  const { hash, sizeBytes } = file;
  const show = (bytes: number) => {
    const of = sizeBytes > 0 ? ` of ${renderBytes(sizeBytes)}` : '';
    progress.show(`${renderBytes(bytes)}${of}`);
  };
  const isTerminal = output.stderr.isTTY === true;
  const copy = (write: Write) => file.copy(write, isTerminal ? show : undefined);
  if (options.output === undefined) {
    await copy((chunk) => output.bytes(chunk));
    return;
  }
  const path = options.output;
  const bytes = await writeWhole(path, copy);
  progress[Symbol.dispose]();
  output.result({ file_hash: hash, path, size: bytes }, `${path}: ${renderBytes(bytes)}`);
}
