import { createHash } from 'node:crypto';
import { AppError, isCid } from '@skerry/protocol';
import { type CidSource, openCidFile } from './cid-file.ts';
import { bytesOf } from './file-bytes.ts';
import { tooLarge } from './limited.ts';

/** A file of the network. Reading it throws FILE_CORRUPT where it is not the one that was asked for. */
export interface NetworkFile {
  /** What the sender says; undefined where it says nothing. */
  readonly sizeBytes: number | undefined;
  readonly bytes: AsyncIterable<Uint8Array>;
}

/** The most that a reader takes, and what it is, as it is called in a sentence. */
export interface SizeLimit {
  readonly bytes: number;
  readonly what: string;
}

/** Bytes under the SHA-256 that they should have. */
async function* checked(bytes: AsyncIterable<Uint8Array>, hash: string): AsyncGenerator<Uint8Array> {
  const digest = createHash('sha256');
  for await (const chunk of bytes) {
    digest.update(chunk);
    yield chunk;
  }
  if (digest.digest('hex') !== hash)
    throw new AppError('FILE_CORRUPT', `the core node sent the wrong bytes for the file ${hash}`);
}

async function openHashedFile(source: CidSource, hash: string, limit: SizeLimit): Promise<NetworkFile> {
  const response = await source.getFile(hash);
  const length = response.headers.get('content-length');
  const sizeBytes = length === null ? undefined : Number(length);
  if (sizeBytes !== undefined && sizeBytes > limit.bytes) {
    await response.body?.cancel().catch(() => {});
    throw tooLarge(limit.bytes, limit.what);
  }
  return { sizeBytes, bytes: checked(bytesOf(source, hash, response), hash) };
}

/**
 * A file by its SHA-256 or its CID. One that says that it has more than the limit is not begun; one that says less and has more is its
 * reader's to end (`limited`). Throws FILE_NOT_FOUND, CID_NOT_FOUND, FILE_TOO_LARGE, UPSTREAM_UNAVAILABLE.
 */
export async function openNetworkFile(
  source: CidSource,
  name: string,
  limit: SizeLimit,
): Promise<NetworkFile> {
  if (!isCid(name)) return openHashedFile(source, name, limit);
  const file = await openCidFile(source, name);
  if (file.sizeBytes > limit.bytes) throw tooLarge(limit.bytes, limit.what);
  return file;
}
