import { createHash } from 'node:crypto';
import { AppError, isCid } from '@skerry/protocol';
import { type CidSource, openCidFile } from './cid-file.ts';

/** A file of the network. Reading it throws FILE_CORRUPT where it is not the one that was asked for. */
export interface NetworkFile {
  /** What the sender says; undefined where it says nothing. */
  readonly sizeBytes: number | undefined;
  readonly bytes: AsyncIterable<Uint8Array>;
}

/**
 * The bytes of a response under the SHA-256 that they should have. It holds the response until it is read: the client empties the
 * body of one that nobody holds any more, and says nothing.
 */
async function* checked(response: Response, hash: string): AsyncGenerator<Uint8Array> {
  const digest = createHash('sha256');
  for await (const chunk of response.body ?? []) {
    digest.update(chunk);
    yield chunk;
  }
  if (digest.digest('hex') !== hash)
    throw new AppError('FILE_CORRUPT', `the core node sent the wrong bytes for the file ${hash}`);
}

function fileOfResponse(response: Response, hash: string): NetworkFile {
  const length = response.headers.get('content-length');
  return { sizeBytes: length === null ? undefined : Number(length), bytes: checked(response, hash) };
}

/** A file by its SHA-256 or its CID. Throws FILE_NOT_FOUND, CID_NOT_FOUND, UPSTREAM_UNAVAILABLE. */
export async function openNetworkFile(source: CidSource, name: string): Promise<NetworkFile> {
  return isCid(name) ? openCidFile(source, name) : fileOfResponse(await source.getFile(name), name);
}
