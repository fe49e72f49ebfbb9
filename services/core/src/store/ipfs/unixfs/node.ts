import { decode, type PBLink } from '@ipld/dag-pb';
import { AppError } from '@skerry/protocol';
import { UnixFS } from 'ipfs-unixfs';
import type { ByteRange } from '../../files/blob-store.ts';
import type { BlockId } from '../cid.ts';

export interface Block {
  readonly id: BlockId;
  readonly bytes: Uint8Array;
}

export type ReadBlock = (id: BlockId) => Promise<Uint8Array>;

export const notUnixfs = (what: string, cause?: unknown) => new AppError('NOT_UNIXFS', what, { cause });

/** A block that may link to others. */
export interface DagNode {
  readonly id: BlockId;
  readonly links: readonly PBLink[];
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

/** Throws NOT_UNIXFS for a link to what is not kept here. */
export const refuseLink = (of: BlockId, { Hash }: PBLink): never => {
  throw notUnixfs(`${of.text} names ${Hash}, which is not of UnixFS`);
};

/** A link of a file, and which bytes of the file it leads to. */
interface FilePart {
  readonly link: PBLink;
  readonly offset: number;
  readonly size: number;
}

/** The links of a file that lead to bytes of the range, with the place of each. */
export function partsOfFile(
  links: readonly PBLink[],
  { blockSizes, data }: UnixFS,
  offset: number,
  range: ByteRange | undefined,
): FilePart[] {
  let next = offset + (data?.length ?? 0);
  return links
    .map((link, index) => {
      const size = Number(blockSizes[index] ?? 0n);
      const part = { link, offset: next, size };
      next += size;
      return part;
    })
    .filter((part) => !range || (part.offset + part.size > range.first && part.offset <= range.last));
}
