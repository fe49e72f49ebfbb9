import { decode, type PBLink } from '@ipld/dag-pb';
import { AppError } from '@skerry/protocol';
import { UnixFS } from 'ipfs-unixfs';
import type { BlockId } from './block-id.ts';

export interface Block {
  readonly id: BlockId;
  readonly bytes: Uint8Array;
}

export type ReadBlock = (id: BlockId) => Promise<Uint8Array>;

export type DagLink = PBLink;

export const notUnixfs = (what: string, cause?: unknown) => new AppError('NOT_UNIXFS', what, { cause });

/** A block that may link to others. */
export interface DagNode {
  readonly id: BlockId;
  readonly links: readonly DagLink[];
  /** What it is of a file or directory; undefined where it is of neither. */
  readonly unixfs: UnixFS | undefined;
}

function unixfsOf(data: Uint8Array | undefined): UnixFS | undefined {
  try {
    return data && UnixFS.unmarshal(data);
  } catch {
    return undefined;
  }
}

/** Undefined: bare bytes. Throws NOT_UNIXFS where the block is malformed. */
export function nodeOf({ id, bytes }: Block): DagNode | undefined {
  if (id.isRaw) return undefined;
  let node: ReturnType<typeof decode>;
  try {
    node = decode(bytes);
  } catch (cause) {
    throw notUnixfs(`the block ${id.text} is malformed`, cause);
  }
  return { id, links: node.Links, unixfs: unixfsOf(node.Data) };
}

export const isFile = ({ type }: UnixFS) => type === 'file' || type === 'raw';
export const isShard = ({ type }: UnixFS) => type === 'hamt-sharded-directory';

/** Throws NOT_UNIXFS for a link to what is not read. */
export const refuseLink = (of: BlockId, { Hash }: DagLink): never => {
  throw notUnixfs(`${of.text} names ${Hash}, which is not of UnixFS`);
};
