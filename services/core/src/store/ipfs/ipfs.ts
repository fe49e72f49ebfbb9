import type { Readable } from 'node:stream';
import type { BlockId } from '@skerry/kit/unixfs';
import type { ByteRange } from '../files/blob-store.ts';

/** What a CID stands for. */
export interface IpfsNode {
  readonly id: BlockId;
  readonly kind: 'file' | 'directory';
  /** Bytes of a file; of a directory what its root says of all below it, which nobody has checked. */
  readonly sizeBytes: number;
}

export interface IpfsEntry {
  readonly name: string;
  readonly cid: string;
  /** As the directory says: contents and the blocks around them. */
  readonly sizeBytes: number;
}

export interface PinOptions {
  /** Bytes of all blocks together. */
  readonly limitBytes: number;
  readonly signal: AbortSignal;
}

/** Of what comes from a client. */
export interface SentOptions extends PinOptions {
  /** As the client says beforehand, if it does: on a disk of the node, what would not fit is refused before its first block. */
  readonly sizeBytes?: number | undefined;
}

export interface AddOptions extends SentOptions {
  readonly cidVersion: 0 | 1;
}

/**
 * Port: files by CID. Adapters: blocks in the node's own blob store (`embedded.ts`), a kubo daemon by its RPC address
 * (`kubo.ts`); `testing/ipfs-suite.ts` holds for both. Every call ends: by the signal, or since nothing came for too
 * long. What came whole is told all the same: nothing is kept that the caller does not know of. All throw CID_NOT_FOUND, IPFS_TIMEOUT, IPFS_UNAVAILABLE, OVERLOADED; NOT_UNIXFS for what is no file or directory.
 */
export interface Ipfs {
  readonly name: 'embedded' | 'kubo';
  /** Takes a file in; its blocks are kept until `unpin`. Throws FILE_TOO_LARGE, STORAGE_FULL, and what the source throws. */
  add(source: Readable, options: AddOptions): Promise<IpfsNode>;
  /**
   * Takes the blocks of a CAR in, each checked against its CID; they are kept until `unpin`. Throws INVALID_CAR,
   * FILE_TOO_LARGE, STORAGE_FULL, and what the source throws.
   */
  addCar(source: Readable, options: SentOptions): Promise<IpfsNode>;
  /** Brings everything below a CID here and keeps it until `unpin`. Throws FILE_TOO_LARGE, STORAGE_FULL. */
  pin(id: BlockId, options: PinOptions): Promise<IpfsNode>;
  /**
   * Harmless where nothing is kept.
   * @param beforeMs milliseconds since 1970: what is a file, and what somebody has begun to pin since, in whichever process, is kept
   */
  unpin(id: BlockId, beforeMs: number): Promise<void>;
  /** Lets go of what came of a CID of which not all came. Harmless where nothing is kept, and where all is. */
  abandon(id: BlockId): Promise<void>;
  /** What lies at a path below a CID. Throws FILE_NOT_FOUND where nothing does. */
  stat(id: BlockId, path: readonly string[], signal: AbortSignal): Promise<IpfsNode>;
  /** The bytes of a file, or one range that lies within it. */
  read(id: BlockId, range: ByteRange | undefined, signal: AbortSignal): Promise<Readable>;
  /** Entries of a directory, in its own order, at most `limit`. */
  list(id: BlockId, limit: number, signal: AbortSignal): Promise<IpfsEntry[]>;
  /** One block as it is, from what is kept here alone. Throws CID_NOT_FOUND. */
  block(id: BlockId, signal: AbortSignal): Promise<Uint8Array>;
  /** Drops what was left half done before `beforeMs` (milliseconds since 1970), also what is whole and became no file. */
  tidy(beforeMs: number): Promise<void>;
}
