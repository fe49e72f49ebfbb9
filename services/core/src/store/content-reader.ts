import { buffer } from 'node:stream/consumers';
import { Slots } from '@skerry/kit';
import { AppError, type ItemHash, isItemHash64, LIMITS } from '@skerry/protocol';
import type { Kysely } from 'kysely';
import type { BlobStore } from './files/blob-store.ts';
import { isCidText } from './ipfs/cid.ts';
import type { Schema } from './schema.ts';

/** The bytes of a message's content file; undefined while it is not at hand. What it throws is no fault of the message. */
export type ReadContentFile = (hash: string) => Promise<Uint8Array | undefined>;

/** The content file of a message; larger ones are no contents. Throws STORAGE_UNAVAILABLE. */
async function readBlob(blobs: BlobStore, hash: ItemHash): Promise<Uint8Array | undefined> {
  try {
    const blob = await blobs.find(hash);
    if (!blob) return undefined;
    if (blob.sizeBytes > LIMITS.contentFileBytes) return new Uint8Array(LIMITS.contentFileBytes + 1);
    return await buffer(await blobs.read(hash));
  } catch (error) {
    // It went between the two looks.
    if (error instanceof AppError && error.code === 'FILE_NOT_FOUND') return undefined;
    if (error instanceof AppError) throw error;
    throw new AppError('STORAGE_UNAVAILABLE', 'the files cannot be read at the moment', { cause: error });
  }
}

/** The bytes of a CID that may be the content of a message; undefined where it is none or not here. */
async function readCid(db: Kysely<Schema>, hash: string): Promise<Uint8Array | undefined> {
  if (!isCidText(hash)) return undefined;
  const row = await db
    .selectFrom('ipfs_contents')
    .select('bytes')
    .where('hash', '=', hash)
    .executeTakeFirst();
  return row?.bytes;
}

/** Contents that are read at once; the others wait for their turn. */
const READ_AT_ONCE = 4;

/** Reads contents that messages name by hash or CID. */
export function createContentReader(db: Kysely<Schema>, blobs: BlobStore): ReadContentFile {
  const slots = new Slots(READ_AT_ONCE);
  return (hash) =>
    slots.run(() => (isItemHash64(hash) ? readBlob(blobs, hash as ItemHash) : readCid(db, hash)));
}
