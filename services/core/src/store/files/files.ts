import type { Readable } from 'node:stream';
import { AppError, type ItemHash } from '@skerry/protocol';
import { type Kysely, sql } from 'kysely';
import type { Accepted, Verdict } from '../../intake/accepted.ts';
import type { Intake } from '../../intake/intake.ts';
import { UnderWay } from '../../intake/under-way.ts';
import type { UploadFields } from '../../intake/upload.ts';
import { foresee, withFile, withoutFile } from '../../intake/upload-check.ts';
import { fileKey, type Touch } from '../dependency-keys.ts';
import type { Schema } from '../schema.ts';
import type { BlobStore, ByteRange, ReceivedBlob } from './blob-store.ts';
import { Claims } from './claims.ts';
import { spare } from './doomed.ts';
import type { LinkedAnswer } from './s3/request.ts';

export interface StoredFile {
  /** SHA-256, or a CID. */
  readonly hash: string;
  readonly sizeBytes: number;
  readonly contentType: string;
  /** Its bytes come from elsewhere, over connections of which there are few. */
  readonly isFar?: boolean | undefined;
  open(range?: ByteRange): Promise<Readable>;
  /** To be piped into a response, where the store has a cheaper way (BlobStore.readToSend). */
  openToSend?(range: ByteRange): Promise<Readable>;
  /** Where whoever holds the bytes gives them out (BlobStore.linkTo). */
  link?(answer: LinkedAnswer): string;
}

export interface FilesOptions {
  readonly db: Kysely<Schema>;
  readonly blobs: BlobStore;
  readonly intake: Pick<Intake, 'client'>;
  readonly pipeline: Touch;
  readonly uploadLimitBytes: number;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/** Those of these files that the database knows to be here. @param hashes SHA-256 in hexadecimal */
export async function listHeld(db: Kysely<Schema>, hashes: readonly string[]): Promise<Set<string>> {
  const { rows } = await sql<{ hash: string }>`
    select hash from files where hash = any(${hashes}::text[])`.execute(db);
  return new Set(rows.map(({ hash }) => hash));
}

/** Files that messages asked to keep, and those that may still be asked for. */
export class Files {
  /** Held while a blob is being stored: the sweep leaves it alone. */
  readonly claims = new Claims();
  readonly #options: FilesOptions;
  readonly #underWay = new UnderWay();

  constructor(options: FilesOptions) {
    this.#options = options;
  }

  /** The largest file that is taken. */
  get limitBytes(): number {
    return this.#options.uploadLimitBytes;
  }

  /** See `BlobStore.receive`. */
  receive(
    source: Readable,
    limitBytes = this.#options.uploadLimitBytes,
    sizeBytes?: number,
  ): Promise<ReceivedBlob> {
    return this.#options.blobs.receive(source, limitBytes, sizeBytes);
  }

  /** Keeps a received file for its uploader. Of one that is refused nothing is kept. */
  async store(
    blob: ReceivedBlob,
    contentType: string,
    fields: UploadFields,
  ): Promise<{ messageHash: string; verdict: Verdict }> {
    const { client } = this.#options.intake;
    const accepted = client.readUpload(fields, { hash: blob.hash, sizeBytes: blob.sizeBytes, contentType });
    return { messageHash: accepted.message.itemHash, verdict: await this.#keepFor(blob, accepted) };
  }

  /** Keeps a received file together with a STORE message that names it. Of one that is refused nothing is kept. */
  storeFor(blob: ReceivedBlob, contentType: string, accepted: Accepted): Promise<Verdict> {
    const file = { hash: blob.hash, sizeBytes: blob.sizeBytes, contentType };
    return this.#keepFor(blob, withFile(accepted, file));
  }

  /** The blob is durable before the database speaks of it. @param accepted brings the file */
  async #keepFor(blob: ReceivedBlob, accepted: Accepted): Promise<Verdict> {
    const { db, intake, now } = this.#options;
    using turn = this.#underWay.begin(accepted);
    const { verdict, isKnown } = await foresee(db, accepted, turn, now);
    if (verdict.status === 'rejected' && isKnown) {
      // A message that waited for its file is told so, unless the world has changed since it was looked at.
      const told = await intake.client.keep(withoutFile(accepted));
      return told.status === 'pending' ? verdict : told;
    }
    // One that is not known is not kept either.
    if (verdict.status !== 'processed') return verdict;
    using _claim = await this.#keep(blob);
    return await intake.client.keep(accepted);
  }

  /** Keeps a file that no message speaks of yet. It is readable at once, and goes after the grace period unless one does. */
  async storeUnpinned(blob: ReceivedBlob, contentType: string): Promise<void> {
    using _claim = await this.#keep(blob);
    await this.#options.pipeline.touch([fileKey(blob.hash)], (trx) =>
      trx
        .insertInto('files')
        .values({ hash: blob.hash, size_bytes: blob.sizeBytes, content_type: contentType })
        .onConflict((conflict) => conflict.doNothing())
        .execute(),
    );
  }

  /** Keeps the bytes; while it is held the sweep leaves them alone, and those of other processes do anyway. */
  async #keep(blob: ReceivedBlob): Promise<Disposable> {
    using stack = new DisposableStack();
    stack.use(await this.claims.take(blob.hash));
    await spare(this.#options.db, [blob.hash]);
    await blob.keep();
    return stack.move();
  }

  /** Throws FILE_NOT_FOUND. */
  async get(hash: ItemHash): Promise<StoredFile> {
    const { db, blobs } = this.#options;
    const row = await db.selectFrom('files').selectAll().where('hash', '=', hash).executeTakeFirst();
    const blob = row && (await blobs.find(hash));
    // What a disk cut off is no file, and is fetched again (lost.ts).
    if (!row || blob?.sizeBytes !== row.size_bytes)
      throw new AppError('FILE_NOT_FOUND', `there is no file ${hash} here`);
    return {
      hash,
      sizeBytes: blob.sizeBytes,
      contentType: row.content_type,
      isFar: blobs.isFar,
      open: (range) => blobs.read(hash, range),
      ...(blobs.readToSend && { openToSend: (range: ByteRange) => blobs.readToSend!(hash, range) }),
      ...(blobs.linkTo && { link: (answer: LinkedAnswer) => blobs.linkTo!(hash, answer) }),
    };
  }
}
