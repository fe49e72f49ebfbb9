import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { digestOfBlock } from '@skerry/kit/unixfs';
import { AppError, type ItemHash, isItemHash64 } from '@skerry/protocol';
import type { FileSource } from '../../store/files/fetching/source.ts';
import type { BlockSource } from '../../store/ipfs/gateways.ts';
import type { SimNode } from './node.ts';

/** What a try to get something from another node comes to. */
export type Crossing = 'through' | 'lost' | 'changed';

/** @param cross what becomes of a try; it must not depend on the order of tries, since several are under way at once */
export function createFileSource(
  at: number,
  find: () => SimNode,
  cross: (from: SimNode, name: string) => Crossing,
): FileSource {
  return {
    name: `node-${at}`,
    handles: isItemHash64,
    async open(name) {
      const from = find();
      const crossing = cross(from, name);
      if (crossing === 'lost' || !from.core) return undefined;
      try {
        const file = await from.core.rooms.files.get(name as ItemHash);
        const bytes = await buffer(await file.open());
        const sent = crossing === 'changed' ? Buffer.concat([bytes, Buffer.from('!')]) : bytes;
        return { stream: Readable.from([sent]), contentType: file.contentType };
      } catch (error) {
        if (error instanceof AppError && error.code === 'FILE_NOT_FOUND') return undefined;
        throw error;
      }
    },
  };
}

/** Blocks of IPFS of the other nodes. */
export function createBlockSource(
  others: () => readonly SimNode[],
  cross: (from: SimNode, name: string) => Crossing,
): BlockSource {
  return {
    async fetch(id, signal) {
      for (const from of others()) {
        const crossing = cross(from, id.text);
        if (crossing === 'lost' || !from.core) continue;
        const bytes = await from.core.rooms.ipfs.block(id, signal).catch(() => undefined);
        const isWhole = crossing === 'through' && bytes !== undefined && digestOfBlock(bytes) === id.digest;
        if (isWhole) return bytes;
      }
      throw new AppError('CID_NOT_FOUND', `no node has ${id.text}`);
    },
  };
}
