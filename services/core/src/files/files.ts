import type { Readable } from 'node:stream';
import { AppError, type ItemHash } from '@skerry/protocol';
import type { Kysely } from 'kysely';
import type { Schema } from '../db/schema.ts';
import type { Pipeline } from '../messages/pipeline.ts';
import type { BlobStore, ReceivedBlob } from './blob-store.ts';
import { acceptUpload, type UploadFields } from './upload.ts';

export interface StoredFile {
  readonly hash: ItemHash;
  readonly sizeBytes: number;
  readonly contentType: string;
  open(): Readable;
}

/** Files that messages asked to keep. */
export class Files {
  readonly #db: Kysely<Schema>;
  readonly #blobs: BlobStore;
  readonly #pipeline: Pipeline;
  readonly #now: () => number;

  constructor(options: { db: Kysely<Schema>; blobs: BlobStore; pipeline: Pipeline; now: () => number }) {
    this.#db = options.db;
    this.#blobs = options.blobs;
    this.#pipeline = options.pipeline;
    this.#now = options.now;
  }

  receive(source: Readable): Promise<ReceivedBlob> {
    return this.#blobs.receive(source);
  }

  /** Keeps a received file for its uploader. The blob is durable before the database speaks of it. */
  async store(
    blob: ReceivedBlob,
    contentType: string,
    fields: UploadFields,
  ): Promise<{ messageHash: string }> {
    const accepted = acceptUpload(
      fields,
      { hash: blob.hash, sizeBytes: blob.sizeBytes, contentType },
      Math.floor(this.#now() / 1000),
    );
    await blob.keep();
    await this.#pipeline.submit(accepted);
    return { messageHash: accepted.message.itemHash };
  }

  /** Throws FILE_NOT_FOUND. */
  async get(hash: ItemHash): Promise<StoredFile> {
    const row = await this.#db.selectFrom('files').selectAll().where('hash', '=', hash).executeTakeFirst();
    const sizeBytes = row && (await this.#blobs.findSize(hash));
    if (!row || sizeBytes === undefined)
      throw new AppError('FILE_NOT_FOUND', `there is no file ${hash} here`);
    return { hash, sizeBytes, contentType: row.content_type, open: () => this.#blobs.read(hash) };
  }
}
