import type { Readable } from 'node:stream';
import type { Hold } from '@skerry/database';
import type { ItemHash } from '@skerry/protocol';
import type { LinkedAnswer } from './s3/request.ts';
import type { StoreMark } from './sweep-mark.ts';

/** A blob that was received whole and hashed, not yet kept. */
export interface ReceivedBlob {
  readonly hash: ItemHash;
  readonly sizeBytes: number;
  /** Makes it durable under its hash, as if it were new: its age starts again. Throws STORAGE_FULL. */
  keep(): Promise<void>;
  /** Forgets it. Harmless after `keep`. */
  discard(): Promise<void>;
}

/** First and last byte, both included, as in HTTP. */
export interface ByteRange {
  readonly first: number;
  readonly last: number;
}

export interface KeptBlob {
  readonly hash: ItemHash;
  readonly sizeBytes: number;
  /** When it was last kept, by the clock of whatever holds it, in milliseconds since 1970. */
  readonly keptAtMs: number;
}

/** @param prefix the first characters of the hashes, or a whole one @param error what the system said */
export type Unread = (prefix: string, error: unknown) => void;

/**
 * Port: bytes by the SHA-256 of them. Whatever is readable under a hash is complete. Adapters: a directory
 * (`directory-store.ts`), an S3-compatible object store (`s3/store.ts`); `testing/blob-suite.ts` holds for each.
 */
export interface BlobStore {
  /**
   * Streams to disk while hashing; memory does not grow with the size. Throws FILE_TOO_LARGE once the source gives more
   * than `limitBytes`, STORAGE_FULL where the disk is full, and what the source failed with; nothing is left behind.
   * @param sizeBytes as the source says beforehand, if it does: what would not fit is refused before its first byte
   */
  receive(source: Readable, limitBytes: number, sizeBytes?: number): Promise<ReceivedBlob>;
  /** Room for what comes as many blobs, where they are on a disk of the node. Throws STORAGE_FULL. @param bytes undefined where not known */
  hold?(bytes: number | undefined): Hold;
  find(hash: ItemHash): Promise<KeptBlob | undefined>;
  /** The bytes, or one range of them that lies within the blob. Throws FILE_NOT_FOUND before the first byte. */
  read(hash: ItemHash, range?: ByteRange): Promise<Readable>;
  /**
   * The same, where a store has a cheaper way to be piped into a response, and for nothing else: chunks may be overwritten once they have gone out
   * (reusing-reader.ts). @param range within the blob, not empty
   */
  readToSend?(hash: ItemHash, range: ByteRange): Promise<Readable>;
  /** A URL where the bytes can be had from whoever holds them, for some minutes, where the store has one that others reach. */
  linkTo?(hash: ItemHash, answer: LinkedAnswer): string;
  /**
   * Up to `limit` blobs in the order of their hashes, from the one that follows `after` on.
   * @param unread told what cannot be read, which is then passed over: all blobs whose hashes begin so. Without it the list fails.
   */
  list(after: ItemHash | undefined, limit: number, unread?: Unread): Promise<readonly KeptBlob[]>;
  /** Blobs are on another machine: each that is read has one of a few connections until it has been read. */
  readonly isFar?: boolean;
  /** Harmless where there is none. Who is reading it reads on. */
  remove(hash: ItemHash): Promise<void>;
  /** Where other nodes may reach the same blobs: says whose sweep removes them. */
  readonly mark?: StoreMark;
}
