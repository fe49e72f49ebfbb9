import { join } from 'node:path';
import type { DiskReserve } from '@skerry/database';
import type { Kysely } from 'kysely';
import type { Schema } from '../../schema.ts';
import type { FilesDisk } from '../disk/files-disk.ts';
import { guardPlace } from '../disk/guarded-place.ts';
import { DirectoryPlace } from './directory-place.ts';
import type { PartsPlace } from './place.ts';
import { type Pieces, SharedPlace } from './shared-place.ts';

export interface PlaceOptions {
  readonly db: Kysely<Schema>;
  /** Undefined where the node's files are in a directory. */
  readonly pieces: Pieces | undefined;
  /** Of the node: parts come to `parts` in it, and are put together in `files`. */
  readonly dataDir: string;
  readonly reserve: DiskReserve;
  /** Of the files, where they are in a directory that may go. */
  readonly disk?: FilesDisk | undefined;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/** Where what has come of files is, where the node's files are in a directory. */
export const partsDirectoryOf = (dataDir: string): string => join(dataDir, 'parts');

/** What has come of files is where all processes reach it that reach the files themselves. */
export const choosePlace = ({ db, pieces, dataDir, reserve, disk, now }: PlaceOptions): PartsPlace =>
  pieces
    ? new SharedPlace({ db, pieces, now })
    : guardPlace(new DirectoryPlace(partsDirectoryOf(dataDir), join(dataDir, 'files'), reserve), disk);
