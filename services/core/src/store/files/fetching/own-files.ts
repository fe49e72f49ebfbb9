import { type ItemHash, isItemHash64 } from '@skerry/protocol';
import type { BlobStore } from '../blob-store.ts';
import type { FileSource } from './source.ts';

/** Nothing says what it was called. */
const CONTENT_TYPE = 'application/octet-stream';

/** What lies in the node's own store, whether or not the database knows of it. */
export const createOwnFiles = (blobs: Pick<BlobStore, 'find' | 'read'>): FileSource => ({
  name: 'the own store',
  handles: isItemHash64,
  async open(name) {
    const hash = name as ItemHash;
    if (!(await blobs.find(hash))) return undefined;
    return { stream: await blobs.read(hash), contentType: CONTENT_TYPE };
  },
});
