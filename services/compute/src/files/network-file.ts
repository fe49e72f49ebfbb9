import { createHash } from 'node:crypto';
import { AppError, isCid } from '@skerry/protocol';
import { type CidSource, openCidFile } from './cid-file.ts';

/** A file of the network. Reading it throws FILE_CORRUPT where it is not the one that was asked for. */
export interface NetworkFile {
  /** What the sender says; undefined where it says nothing. */
  readonly sizeBytes: number | undefined;
  readonly bytes: AsyncIterable<Uint8Array>;
}

async function* checked(body: AsyncIterable<Uint8Array>, hash: string): AsyncGenerator<Uint8Array> {
  const digest = createHash('sha256');
  for await (const chunk of body) {
    digest.update(chunk);
    yield chunk;
  }
  if (digest.digest('hex') !== hash)
    throw new AppError('FILE_CORRUPT', `the core node sent the wrong bytes for the file ${hash}`);
}

/** What a response brings, under the SHA-256 that it should have. */
function fileOfResponse({ headers, body }: Response, hash: string): NetworkFile {
  const length = headers.get('content-length');
  return {
    sizeBytes: length === null ? undefined : Number(length),
    bytes: checked(body ?? (async function* () {})(), hash),
  };
}

/** A file by its SHA-256 or its CID. Throws FILE_NOT_FOUND, CID_NOT_FOUND, UPSTREAM_UNAVAILABLE. */
export async function openNetworkFile(source: CidSource, name: string): Promise<NetworkFile> {
  return isCid(name) ? openCidFile(source, name) : fileOfResponse(await source.getFile(name), name);
}
