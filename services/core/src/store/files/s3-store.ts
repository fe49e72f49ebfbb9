import { createReadStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import type { DiskReserve } from '@skerry/database';
import { AppError, parseItemHash } from '@skerry/protocol';
import type { BlobStore, KeptBlob } from './blob-store.ts';
import { asS3Error, finish, readText, S3Client, type S3Settings } from './s3-request.ts';
import { openSpool } from './spool.ts';

/** The largest object of one PUT (S3 "Uploading objects"). */
export const S3_OBJECT_BYTES_MAX = 5 * 1024 ** 3;
/** S3 "ListObjectsV2": at most 1000 keys in one answer, each entry well below 1 KiB. */
const LIST_PAGE = 1000;
const LIST_BYTES_MAX = 4 * 1024 * 1024;
const READ_BYTES = 512 * 1024;

const field = (xml: string, name: string) => new RegExp(`<${name}>([^<]*)</${name}>`).exec(xml)?.[1] ?? '';

/**
 * The objects of a ListObjectsV2 answer whose keys are hashes; keys of anybody else in the bucket are passed over.
 * Our keys are hexadecimal digits, so that nothing in them can be escaped.
 */
export function parseListing(xml: string): KeptBlob[] {
  return [...xml.matchAll(/<Contents>(.*?)<\/Contents>/gs)].flatMap(([, entry]) => {
    const hash = field(entry!, 'Key');
    const keptAtMs = Date.parse(field(entry!, 'LastModified'));
    const sizeBytes = Number(field(entry!, 'Size') || Number.NaN);
    return /^[0-9a-f]{64}$/.test(hash) && Number.isFinite(keptAtMs) && Number.isSafeInteger(sizeBytes)
      ? [{ hash: parseItemHash(hash), sizeBytes, keptAtMs }]
      : [];
  });
}

/**
 * Blobs in a bucket, each an object named by its hash. A blob is first received on the local disk: so it is stored with
 * one PUT under its final name, whose signature holds its SHA-256 (the object store refuses other bytes), can be sent
 * again where the object store fails for a moment, and leaves nothing in the bucket when anybody dies half-way.
 */
export async function createS3BlobStore(
  settings: S3Settings,
  spoolDirectory: string,
  reserve?: DiskReserve,
): Promise<BlobStore> {
  const spool = await openSpool(spoolDirectory, reserve);
  const client = new S3Client(settings);
  const bucket = await client.call({ method: 'HEAD', key: '' });
  await finish(bucket);
  if (bucket.statusCode !== 200) {
    throw new AppError(
      'INVALID_CONFIG',
      `the object store answered ${bucket.statusCode} for the bucket ${settings.bucket}: it must exist, and the access key must be allowed to use it`,
    );
  }

  return {
    async receive(source, limitBytes) {
      const { path, hash, sizeBytes } = await spool.receive(source, limitBytes);
      let isKept = false;
      return {
        hash,
        sizeBytes,
        async keep() {
          if (isKept) return;
          const response = await client.call({
            method: 'PUT',
            key: hash,
            headers: { 'Content-Length': String(sizeBytes), 'X-Amz-Content-Sha256': hash },
            body: () => createReadStream(path, { highWaterMark: READ_BYTES }),
          });
          if (response.statusCode !== 200) throw await asS3Error(response, `PUT ${hash}`);
          await finish(response);
          isKept = true;
        },
        discard: () => rm(path, { force: true }),
      };
    },
    async find(hash) {
      const response = await client.call({ method: 'HEAD', key: hash });
      await finish(response);
      if (response.statusCode === 404) return undefined;
      if (response.statusCode !== 200) throw await asS3Error(response, `HEAD ${hash}`);
      return {
        hash,
        sizeBytes: Number(response.headers['content-length']),
        keptAtMs: Date.parse(response.headers['last-modified']!),
      };
    },
    async read(hash, range) {
      const response = await client.call({
        method: 'GET',
        key: hash,
        ...(range ? { headers: { Range: `bytes=${range.first}-${range.last}` } } : {}),
      });
      if (response.statusCode === (range ? 206 : 200)) {
        const given = response.headers['content-range'] ?? '';
        if (range && !given.startsWith(`bytes ${range.first}-${range.last}/`)) {
          response.destroy();
          throw new AppError('STORAGE_UNAVAILABLE', 'the object store returned a different range', {
            cause: new Error(`asked for ${range.first}-${range.last}, got ${given.slice(0, 100)}`),
          });
        }
        // Who reads slowly or pauses is not a dead connection.
        response.setTimeout(0);
        return response;
      }
      if (response.statusCode !== 404) throw await asS3Error(response, `GET ${hash}`);
      await finish(response);
      throw new AppError('FILE_NOT_FOUND', `there is no file ${hash} here`);
    },
    async list(after, limit) {
      const found: KeptBlob[] = [];
      for (let from: string | undefined = after; found.length < limit; ) {
        const query = {
          'list-type': '2',
          'max-keys': String(Math.min(LIST_PAGE, limit - found.length)),
          ...(from === undefined ? {} : { 'start-after': from }),
        };
        const response = await client.call({ method: 'GET', key: '', query });
        if (response.statusCode !== 200) throw await asS3Error(response, 'list');
        const xml = await readText(response, LIST_BYTES_MAX);
        found.push(...parseListing(xml));
        const lastKey = [...xml.matchAll(/<Key>([^<]*)<\/Key>/g)].at(-1)?.[1];
        if (lastKey === undefined || field(xml, 'IsTruncated') !== 'true') break;
        from = lastKey;
      }
      return found;
    },
    async remove(hash) {
      const response = await client.call({ method: 'DELETE', key: hash });
      if (response.statusCode !== 204 && response.statusCode !== 404 && response.statusCode !== 200)
        throw await asS3Error(response, `DELETE ${hash}`);
      await finish(response);
    },
  };
}
