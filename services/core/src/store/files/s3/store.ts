import { createReadStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import type { DiskReserve } from '@skerry/database';
import { AppError, type ItemHash, parseItemHash } from '@skerry/protocol';
import type { BlobStore, ByteRange, KeptBlob, ReceivedBlob } from '../blob-store.ts';
import { openSpool, type Spool, type SpooledFile } from '../spool.ts';
import type { StoreMark } from '../sweep-mark.ts';
import { createSweepMark } from './marks.ts';
import { putObject, readObject, removeObject } from './objects.ts';
import { asS3Error, finish, type LinkedAnswer, readText, S3Client, type S3Settings } from './request.ts';

/** The largest object of one PUT (S3 "Uploading objects"). */
export const S3_OBJECT_BYTES_MAX = 5 * 1024 ** 3;
/** S3 "ListObjectsV2": at most 1000 keys in one answer, each entry well below 1 KiB. */
const LIST_PAGE = 1000;
const LIST_BYTES_MAX = 4 * 1024 * 1024;
const READ_BYTES = 512 * 1024;
/** A download that has begun goes on after it. */
const LINK_SECONDS = 600;

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

/** One page of a bucket's listing, and the key to go on after; undefined where it is the last one. */
async function listPage(client: S3Client, after: string | undefined, limit: number) {
  const query = {
    'list-type': '2',
    'max-keys': String(Math.min(LIST_PAGE, limit)),
    ...(after === undefined ? {} : { 'start-after': after }),
  };
  const response = await client.call({ method: 'GET', key: '', query });
  if (response.statusCode !== 200) throw await asS3Error(response, 'list');
  const xml = await readText(response, LIST_BYTES_MAX);
  const lastKey = [...xml.matchAll(/<Key>([^<]*)<\/Key>/g)].at(-1)?.[1];
  return { blobs: parseListing(xml), next: field(xml, 'IsTruncated') === 'true' ? lastKey : undefined };
}

class S3BlobStore implements BlobStore {
  readonly #client: S3Client;
  readonly #spool: Spool;
  readonly isFar = true;
  readonly mark: StoreMark;
  readonly linkTo?: (hash: ItemHash, answer: LinkedAnswer) => string;

  constructor(client: S3Client, spool: Spool, publicEndpoint: string | undefined) {
    this.#client = client;
    this.#spool = spool;
    this.mark = createSweepMark(client);
    if (publicEndpoint !== undefined)
      this.linkTo = (hash, answer) => client.linkTo(publicEndpoint, hash, LINK_SECONDS, answer);
  }

  async receive(source: Readable, limitBytes: number, announcedBytes?: number): Promise<ReceivedBlob> {
    const file = await this.#spool.receive(source, limitBytes, announcedBytes);
    const { path, hash, sizeBytes } = file;
    let isKept = false;
    return {
      hash,
      sizeBytes,
      keep: async () => {
        if (!isKept) await this.#put(file);
        isKept = true;
      },
      discard: () => rm(path, { force: true }),
    };
  }

  #put({ path, hash, sizeBytes }: SpooledFile): Promise<void> {
    const open = () => createReadStream(path, { highWaterMark: READ_BYTES });
    return putObject(this.#client, hash, { sizeBytes, sha256: hash, open });
  }

  async find(hash: ItemHash): Promise<KeptBlob | undefined> {
    const response = await this.#client.call({ method: 'HEAD', key: hash });
    await finish(response);
    if (response.statusCode === 404) return undefined;
    if (response.statusCode !== 200) throw await asS3Error(response, `HEAD ${hash}`);
    return {
      hash,
      sizeBytes: Number(response.headers['content-length']),
      keptAtMs: Date.parse(response.headers['last-modified']!),
    };
  }

  async read(hash: ItemHash, range?: ByteRange): Promise<Readable> {
    const found = await readObject(this.#client, hash, range);
    if (!found) throw new AppError('FILE_NOT_FOUND', `there is no file ${hash} here`);
    return found;
  }

  async list(after: ItemHash | undefined, limit: number): Promise<readonly KeptBlob[]> {
    const found: KeptBlob[] = [];
    for (let from: string | undefined = after; found.length < limit; ) {
      const { blobs, next } = await listPage(this.#client, from, limit - found.length);
      found.push(...blobs);
      if (next === undefined) break;
      from = next;
    }
    return found;
  }

  remove(hash: ItemHash): Promise<void> {
    return removeObject(this.#client, hash);
  }
}

/** S3 refuses a request that is dated a quarter of an hour off (RequestTimeTooSkewed). */
const CLOCK_OFF_MS = 14 * 60_000;

/** Why the bucket cannot be used. A clock is set right by itself, as after a power cut; a setting is not. */
function refusalOf({ statusCode, headers }: IncomingMessage, bucket: string): AppError {
  const aheadMs = Date.now() - Date.parse(headers.date ?? '');
  if (statusCode === 403 && Math.abs(aheadMs) > CLOCK_OFF_MS)
    return new AppError(
      'STORAGE_UNAVAILABLE',
      `the object store refuses this server, whose clock is ${Math.round(Math.abs(aheadMs) / 60_000)} minutes ${aheadMs > 0 ? 'ahead of' : 'behind'} the store's: set the clock (timedatectl set-ntp true)`,
    );
  return new AppError(
    'INVALID_CONFIG',
    `the object store answered ${statusCode} for the bucket ${bucket}: it must exist, and the access key must be allowed to use it`,
  );
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
  isAlone?: boolean,
): Promise<BlobStore> {
  const spool = await openSpool(spoolDirectory, reserve, { isAlone });
  const client = new S3Client(settings);
  const answer = await client.call({ method: 'HEAD', key: '' });
  await finish(answer);
  if (answer.statusCode !== 200) throw refusalOf(answer, settings.bucket);
  return new S3BlobStore(client, spool, settings.publicEndpoint);
}
