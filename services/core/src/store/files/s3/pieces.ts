import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import type { Pieces } from '../parts/shared-place.ts';
import { putObject, readObject, removeObject } from './objects.ts';
import { S3Client, type S3Settings } from './request.ts';

/** Pieces beside the blobs of a bucket, which are named by a hash and nothing else. */
export function createS3Pieces(settings: S3Settings): Pieces {
  const client = new S3Client(settings);
  const keyOf = (piece: string) => `parts/${piece}`;
  return {
    put(piece, chunks) {
      const digest = createHash('sha256');
      for (const chunk of chunks) digest.update(chunk);
      const sizeBytes = chunks.reduce((sum, { length }) => sum + length, 0);
      const open = () => Readable.from(chunks, { objectMode: false });
      return putObject(client, keyOf(piece), { sizeBytes, sha256: digest.digest('hex'), open });
    },
    read: (piece) => readObject(client, keyOf(piece)),
    remove: (piece) => removeObject(client, keyOf(piece)),
  };
}
