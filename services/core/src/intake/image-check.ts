import { AppError, IMAGE_NAMES, isItemHash64 } from '@skerry/protocol';
import { type Kysely, sql } from 'kysely';
import type { Schema } from '../store/schema.ts';
import type { Accepted } from './accepted.ts';

/**
 * Refuses an instance whose image, named by a hash, is nowhere: it would be placed, and fail. A file or STORE message is
 * enough, also one that is pending. Throws UNKNOWN_IMAGE.
 *
 * @param images hashes that compute nodes know by themselves
 */
export const createImageCheck =
  (db: Kysely<Schema>, images: readonly string[]) =>
  async ({ image }: Accepted): Promise<void> => {
    if (image === null || !isItemHash64(image) || images.includes(image)) return;
    const { rows } = await sql<{ known: boolean }>`
      select exists (select from files where hash = ${image})
        or exists (select from messages where type = 'STORE' and (item_hash = ${image} or subject = ${image}))
        as known`.execute(db);
    if (rows[0]?.known) return;
    throw new AppError(
      'UNKNOWN_IMAGE',
      `there is no file and no STORE message ${image} to use as an image; there is ${IMAGE_NAMES.join(', ')}, and any disk that is stored first`,
    );
  };
