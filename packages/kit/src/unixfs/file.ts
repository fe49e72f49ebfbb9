import { encode } from '@ipld/dag-pb';
import { UnixFS } from 'ipfs-unixfs';
import { type BlockId, digestOfBlock, findBlockId } from './block-id.ts';
import { type Block, type DagLink, isFile, nodeOf, notUnixfs, refuseLink } from './node.ts';

/** Bytes of a file: the first and the last one, both included. */
export interface FileRange {
  readonly first: number;
  readonly last: number;
}

/** Bytes of a file that are together. */
interface FilePlace {
  /** Where they begin in what they are a part of. */
  readonly offset: number;
  readonly sizeBytes: number;
}

export interface FilePart extends FilePlace {
  readonly id: BlockId;
}

/** A block that is a file, or a part of one: bytes of its own, then its parts. */
export interface FileNode {
  readonly data: Uint8Array;
  readonly parts: readonly FilePart[];
  readonly sizeBytes: number;
}

/** The links of a file's node, each with the place that the node says its bytes have. */
export function placeParts(
  links: readonly DagLink[],
  { blockSizes, data }: Pick<UnixFS, 'blockSizes' | 'data'>,
): (FilePlace & { readonly link: DagLink })[] {
  let offset = data?.length ?? 0;
  return links.map((link, index) => {
    const part = { link, offset, sizeBytes: Number(blockSizes[index] ?? 0n) };
    offset += part.sizeBytes;
    return part;
  });
}

/** Whether a place, in a part that begins at `start`, has bytes of the range. */
export const isWithin = ({ offset, sizeBytes }: FilePlace, start: number, { first, last }: FileRange) =>
  start + offset <= last && start + offset + sizeBytes > first;

export const leafOf = (data: Uint8Array): FileNode => ({ data, parts: [], sizeBytes: data.length });

/** Throws NOT_UNIXFS where the block is no file, or no sound one. */
export function fileNodeOf(block: Block): FileNode {
  const { id, bytes } = block;
  const node = nodeOf(block);
  if (!node) return leafOf(bytes);
  const { links, unixfs } = node;
  if (!unixfs || !isFile(unixfs)) throw notUnixfs(`${id.text} is no file`);
  if (unixfs.blockSizes.length !== links.length)
    throw notUnixfs(`${id.text} does not say the size of each of its parts`);
  const data = unixfs.data ?? new Uint8Array();
  const parts = placeParts(links, unixfs).map(({ link, offset, sizeBytes }) => ({
    id: findBlockId(link.Hash) ?? refuseLink(id, link),
    offset,
    sizeBytes,
  }));
  const sizeBytes = parts.reduce((sum, part) => sum + part.sizeBytes, data.length);
  if (!Number.isSafeInteger(sizeBytes)) throw notUnixfs(`${id.text} says that it is endless`);
  return { data, parts, sizeBytes };
}

/** The two ways in which software wraps a leaf's bytes. */
const wrappedDigests = (data: Uint8Array) =>
  (['file', 'raw'] as const).map((type) =>
    digestOfBlock(encode({ Data: new UnixFS({ type, data }).marshal(), Links: [] })),
  );

/** Whether these bytes are all that a part is: its block need not be read then. */
export const isLeaf = ({ digest, isRaw }: BlockId, data: Uint8Array): boolean =>
  isRaw ? digestOfBlock(data) === digest : wrappedDigests(data).includes(digest);
