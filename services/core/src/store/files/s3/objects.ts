import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { AppError } from '@skerry/protocol';
import type { ByteRange } from '../blob-store.ts';
import { asS3Error, finish, type S3Client } from './request.ts';

/** What one object is put, read and removed with. */

export interface NewObject {
  readonly sizeBytes: number;
  /** Hexadecimal digits: the object store refuses other bytes. */
  readonly sha256: string;
  /** Its bytes, once more for each attempt. */
  open(): Readable;
  /** One that is there already stays, where the store can tell (S3 "Conditional writes"). */
  readonly isFirst?: boolean;
}

/** S3 "PutObject", If-None-Match: it is there already, or somebody else puts it at the same moment. */
const NOT_FIRST = [409, 412];

/** Throws STORAGE_FULL, STORAGE_UNAVAILABLE. */
export async function putObject(
  client: S3Client,
  key: string,
  { sizeBytes, sha256, open, isFirst = false }: NewObject,
): Promise<void> {
  const response = await client.call({
    method: 'PUT',
    key,
    headers: {
      'Content-Length': String(sizeBytes),
      'X-Amz-Content-Sha256': sha256,
      ...(isFirst && { 'If-None-Match': '*' }),
    },
    body: open,
  });
  const isThere = isFirst && NOT_FIRST.includes(response.statusCode!);
  if (response.statusCode !== 200 && !isThere) throw await asS3Error(response, `PUT ${key}`);
  await finish(response);
}

/** Throws STORAGE_UNAVAILABLE where an answer holds another range than the one that was asked for. */
function checkRange(response: IncomingMessage, { first, last }: ByteRange): void {
  const given = response.headers['content-range'] ?? '';
  if (given.startsWith(`bytes ${first}-${last}/`)) return;
  response.destroy();
  throw new AppError('STORAGE_UNAVAILABLE', 'the object store returned a different range', {
    cause: new Error(`asked for ${first}-${last}, got ${given.slice(0, 100)}`),
  });
}

/** Its bytes, or one range of them that lies within it; undefined where there is none. Throws STORAGE_UNAVAILABLE. */
export async function readObject(
  client: S3Client,
  key: string,
  range?: ByteRange,
): Promise<IncomingMessage | undefined> {
  const response = await client.call({
    method: 'GET',
    key,
    ...(range ? { headers: { Range: `bytes=${range.first}-${range.last}` } } : {}),
  });
  if (response.statusCode === (range ? 206 : 200)) {
    if (range) checkRange(response, range);
    // Who reads slowly or pauses is not a dead connection.
    response.setTimeout(0);
    return response;
  }
  if (response.statusCode !== 404) throw await asS3Error(response, `GET ${key}`);
  await finish(response);
  return undefined;
}

/** Harmless where there is none. Throws STORAGE_UNAVAILABLE. */
export async function removeObject(client: S3Client, key: string): Promise<void> {
  const response = await client.call({ method: 'DELETE', key });
  if (![200, 204, 404].includes(response.statusCode!)) throw await asS3Error(response, `DELETE ${key}`);
  await finish(response);
}
