import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { DiskReserve } from '@skerry/database';
import { type Logger, loadOrCreateText, makeDirectory } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import type { BlobStore } from './blob-store.ts';
import { createDirectoryBlobStore, holdsAny } from './directory-store.ts';
import { FilesDisk, ID_FILE } from './disk/files-disk.ts';
import { guardStore } from './disk/guarded-store.ts';
import type { Pieces } from './parts/shared-place.ts';
import { readStoreId } from './s3/marks.ts';
import { createS3Pieces } from './s3/pieces.ts';
import type { S3Settings } from './s3/request.ts';
import { createS3BlobStore, S3_OBJECT_BYTES_MAX } from './s3/store.ts';
import { enterDirectory } from './shared-directory.ts';

export interface StoreSettings {
  readonly s3Endpoint: string | undefined;
  readonly s3Bucket: string | undefined;
  readonly s3Region: string;
  readonly s3AccessKeyId: string | undefined;
  readonly s3SecretAccessKey: string | undefined;
  readonly s3PublicEndpoint: string | undefined;
  readonly uploadLimitBytes: number;
}

/** The object store that the settings name, or undefined where they name none. Throws INVALID_CONFIG for half of one. */
export function parseS3Settings(settings: StoreSettings): S3Settings | undefined {
  const {
    s3Endpoint,
    s3Bucket,
    s3Region,
    s3AccessKeyId,
    s3SecretAccessKey,
    s3PublicEndpoint,
    uploadLimitBytes,
  } = settings;
  const needed = {
    SKERRY_CORE_S3_ENDPOINT: s3Endpoint,
    SKERRY_CORE_S3_BUCKET: s3Bucket,
    SKERRY_CORE_S3_ACCESS_KEY_ID: s3AccessKeyId,
    SKERRY_CORE_S3_SECRET_ACCESS_KEY: s3SecretAccessKey,
  };
  const missing = Object.entries(needed).flatMap(([name, value]) => (value === undefined ? [name] : []));
  if (missing.length === Object.keys(needed).length && s3PublicEndpoint === undefined) return undefined;
  if (missing.length > 0)
    throw new AppError('INVALID_CONFIG', `an object store also needs ${missing.join(', ')}`);
  if (!/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(s3Bucket!))
    throw new AppError('INVALID_CONFIG', 'SKERRY_CORE_S3_BUCKET: expected the name of a bucket');
  if (uploadLimitBytes > S3_OBJECT_BYTES_MAX) {
    throw new AppError(
      'INVALID_CONFIG',
      `SKERRY_CORE_UPLOAD_LIMIT_BYTES: an object store takes files of up to ${S3_OBJECT_BYTES_MAX} bytes`,
    );
  }
  return {
    endpoint: s3Endpoint!,
    bucket: s3Bucket!,
    region: s3Region,
    accessKeyId: s3AccessKeyId!,
    secretAccessKey: s3SecretAccessKey!,
    ...(s3PublicEndpoint === undefined ? {} : { publicEndpoint: s3PublicEndpoint }),
  };
}

/** The node's blobs, and a name by which two processes know that they have the same ones. */
export interface OpenStore {
  readonly blobs: BlobStore;
  /** Undefined while nothing says that the directory is the node's. */
  readonly id: string | undefined;
  /** For what has come of files, where all processes of the node reach it. */
  readonly pieces?: Pieces;
  /** Of the directory, where they are in one. */
  readonly disk?: FilesDisk;
}

export interface OpenStoreOptions {
  /** For the blobs, or for what is received on its way to the object store. */
  readonly directory: string;
  readonly reserve: DiskReserve;
  /** What the database knows the directory by; undefined where none was noted. */
  readonly knownId?: string | undefined;
  /** Hashes of which one has to be in a directory that was not noted; it may be any where there are none. */
  readonly witnesses?: readonly string[];
  /** Notes what the directory is known by. Resolves with what is noted then. */
  readonly note?: (id: string) => Promise<string>;
  readonly log: Logger;
}

/**
 * The node's blobs: in a directory, or in the object store that the settings name. Several processes on one machine may use one directory. Where
 * it is not the one that is known, as while its disk is not mounted, nothing is done in it until it is.
 */
export async function openBlobStore(settings: StoreSettings, options: OpenStoreOptions): Promise<OpenStore> {
  const { directory, reserve, knownId, witnesses = [], note = async (id) => id, log } = options;
  const s3 = parseS3Settings(settings);
  await makeDirectory(directory);
  const enter = (open: (isAlone: boolean) => Promise<BlobStore>) => enterDirectory(`${directory}.lock`, open);
  if (s3) {
    const blobs = await enter((isAlone) => createS3BlobStore(s3, directory, reserve, isAlone));
    return { blobs, id: await readStoreId(s3), pieces: createS3Pieces(s3) };
  }
  const recognize = async () =>
    witnesses.length === 0 || (await holdsAny(directory, witnesses))
      ? note(await loadOrCreateText(join(directory, ID_FILE), randomUUID, 0o600))
      : undefined;
  const disk = new FilesDisk({ directory, id: knownId ?? (await recognize()), recognize, log });
  await disk.look();
  const isHere = disk.absence === undefined;
  const blobs = await enter((isAlone) => createDirectoryBlobStore(directory, { reserve, isAlone, isHere }));
  return { blobs: guardStore(blobs, disk), id: disk.id, disk };
}
