import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import type { Hold } from '@skerry/database';
import { type BlockId, digestOfBlock } from '@skerry/kit/unixfs';
import { AppError, type ItemHash } from '@skerry/protocol';
import type { BlobStore } from '../files/blob-store.ts';
import type { Claims } from '../files/claims.ts';
import type { BlockSource } from './gateways.ts';
import { IPFS_LIMITS } from './limits.ts';

export interface BlocksOptions {
  readonly blobs: BlobStore;
  readonly claims: Claims;
  readonly source: BlockSource;
}

/** Blocks as blobs: a block's digest is the SHA-256 that names a blob. */
export class Blocks {
  readonly #options: BlocksOptions;

  constructor(options: BlocksOptions) {
    this.#options = options;
  }

  /** The block as it is kept here. Its bytes were hashed on their way in, and are hashed again. */
  async find({ digest }: BlockId): Promise<Uint8Array | undefined> {
    const { blobs } = this.#options;
    const blob = await blobs.find(digest as ItemHash);
    if (!blob || blob.sizeBytes > IPFS_LIMITS.blockBytes) return undefined;
    try {
      const bytes = await buffer(await blobs.read(digest as ItemHash));
      return digestOfBlock(bytes) === digest ? bytes : undefined;
    } catch (error) {
      if (error instanceof AppError && error.code === 'FILE_NOT_FOUND') return undefined;
      throw error;
    }
  }

  /** The block, from here or from others; nothing is kept. */
  async read(id: BlockId, signal: AbortSignal): Promise<Uint8Array> {
    return (await this.find(id)) ?? (await this.#options.source.fetch(id, signal));
  }

  /**
   * The block, kept here. The caller has noted that a root needs it: the sweep leaves it alone from then on.
   * @param hold told of one that was not here before that is written. It may throw STORAGE_FULL
   */
  async obtain(id: BlockId, signal: AbortSignal, hold?: Pick<Hold, 'use'>): Promise<Uint8Array> {
    {
      // Whoever sweeps this blob has the claim until it is gone.
      using _claim = await this.#options.claims.take(id.digest as ItemHash);
      const known = await this.find(id);
      if (known) return known;
    }
    const bytes = await this.#options.source.fetch(id, signal);
    hold?.use(bytes.length);
    await this.keep(id.digest, bytes);
    return bytes;
  }

  async keep(digest: string, bytes: Uint8Array): Promise<void> {
    const { blobs, claims } = this.#options;
    using _claim = await claims.take(digest as ItemHash);
    if ((await blobs.find(digest as ItemHash))?.sizeBytes === bytes.length) return;
    const blob = await blobs.receive(Readable.from([bytes]), IPFS_LIMITS.blockBytes);
    try {
      await blob.keep();
    } finally {
      await blob.discard();
    }
  }
}
