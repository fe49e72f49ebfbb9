import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { AppError, sha256Hex } from '@skerry/protocol';
import type { StoreMark } from '../sweep-mark.ts';
import { type NewObject, putObject, readObject } from './objects.ts';
import { readText, S3Client, type S3Settings } from './request.ts';

/** Words of a few bytes beside the blobs of a bucket, which are named by a hash and nothing else. */
const STORE_ID = 'store-id';
const SWEEP_MARK = 'sweep-mark';
const WORD_BYTES_MAX = 64;

const objectOf = (word: string): NewObject => ({
  sizeBytes: word.length,
  sha256: sha256Hex(word),
  open: () => Readable.from([Buffer.from(word)], { objectMode: false }),
});

/**
 * What a bucket is told from others by: an object that whoever comes first puts there. Its name would not do, since every store may
 * have one of that name. Where it takes no such object, being full or by its policy, the name has to do. Throws STORAGE_UNAVAILABLE.
 */
export async function readStoreId(settings: S3Settings): Promise<string> {
  const client = new S3Client(settings);
  const read = async () => {
    const found = await readObject(client, STORE_ID);
    return found && readText(found, WORD_BYTES_MAX);
  };
  const known = await read();
  if (known) return known;
  const id = randomUUID();
  try {
    // Of two that come first at the same moment both take what is there in the end.
    await putObject(client, STORE_ID, { ...objectOf(id), isFirst: true });
    return (await read()) ?? id;
  } catch (error) {
    if (error instanceof AppError) return `bucket ${settings.bucket}`;
    throw error;
  }
}

/** Whose sweep removes from the bucket. */
export const createSweepMark = (client: S3Client): StoreMark => ({
  async read() {
    const found = await readObject(client, SWEEP_MARK);
    if (!found) return undefined;
    const { date, 'last-modified': modified } = found.headers;
    // Both are the store's own clock.
    const ageMs = Date.parse(date!) - Date.parse(modified!);
    return { word: await readText(found, WORD_BYTES_MAX), ageMs };
  },
  write: (word) => putObject(client, SWEEP_MARK, objectOf(word)),
});
