import { decode, type PBLink, type PBNode } from '@ipld/dag-pb';
import { AppError } from '@skerry/protocol';
import { UnixFS } from 'ipfs-unixfs';
import type { ByteRange } from '../../files/blob-store.ts';
import { type BlockId, findBlockId } from '../cid.ts';
import { IPFS_LIMITS } from '../limits.ts';
import { createUnixfs } from '../unixfs.ts';
import { type AskedBytes, rangeWithin } from './byte-range.ts';

/** Which blocks are asked for at the end of a path (IPFS specifications, "Trustless Gateway", `dag-scope`). */
export type DagScope = 'block' | 'entity' | 'all';

export interface Selection {
  readonly scope: DagScope;
  /** Of the file alone, where the end of the path is one. */
  readonly bytes?: AskedBytes | undefined;
}

export interface Block {
  readonly id: BlockId;
  readonly bytes: Uint8Array;
}

export type ReadBlock = (id: BlockId) => Promise<Uint8Array>;

const IDENTITY = 0x00;
/** Below a sharded directory: a link to another shard has no more than this before an entry's name, in hexadecimal digits. */
const shardDigits = ({ fanout }: UnixFS) => (Number(fanout ?? 256n) - 1).toString(16).length;

/** The blocks on the way to the end of a path, in order, the last of them its root. Throws what reading them throws. */
export async function blocksOfPath(
  root: BlockId,
  path: readonly string[],
  read: ReadBlock,
  signal: AbortSignal,
): Promise<BlockId[]> {
  if (path.length === 0) {
    await read(root);
    return [root];
  }
  const met = new Map<string, BlockId>();
  const unixfs = createUnixfs((id) => {
    met.set(id.text, id);
    return read(id);
  });
  const { id } = await unixfs.stat(root, path, signal);
  met.delete(id.text);
  return [...met.values(), id];
}

/** A node of UnixFS, or undefined where a block is none. */
function unixfsOf({ Data }: PBNode): UnixFS | undefined {
  try {
    return Data && UnixFS.unmarshal(Data);
  } catch {
    return undefined;
  }
}

interface Place {
  readonly id: BlockId;
  readonly depth: number;
  /** Where its first byte is in the file. */
  readonly offset: number;
}

/** The links of a file that lead to bytes of the range, with the place of each. */
function linksOfFile(
  links: readonly PBLink[],
  { blockSizes, data }: UnixFS,
  offset: number,
  range: ByteRange | undefined,
): { link: PBLink; offset: number }[] {
  let next = offset + (data?.length ?? 0);
  return links
    .map((link, index) => {
      const at = next;
      next += Number(blockSizes[index] ?? 0n);
      return { link, offset: at, end: next };
    })
    .filter(({ offset: at, end }) => !range || (end > range.first && at <= range.last));
}

function linksToFollow(
  node: PBNode,
  scope: DagScope,
  offset: number,
  range: ByteRange | undefined,
): { link: PBLink; offset: number }[] {
  if (scope === 'block') return [];
  const all = () => node.Links.map((link) => ({ link, offset: 0 }));
  if (scope === 'all') return all();
  const unixfs = unixfsOf(node);
  if (unixfs?.type === 'file' || unixfs?.type === 'raw')
    return linksOfFile(node.Links, unixfs, offset, range);
  if (unixfs?.type !== 'hamt-sharded-directory') return [];
  const digits = shardDigits(unixfs);
  return all().filter(({ link }) => link.Name?.length === digits);
}

function nodeOf({ id, bytes }: Block): PBNode | undefined {
  if (id.isRaw) return undefined;
  try {
    return decode(bytes);
  } catch (cause) {
    throw new AppError('NOT_UNIXFS', `the block ${id.text} is malformed`, { cause });
  }
}

/** How many bytes the file has whose root this is; undefined where it is no file. */
function sizeOf(root: Block, node: PBNode | undefined): number | undefined {
  if (!node) return root.bytes.length;
  const unixfs = unixfsOf(node);
  return unixfs?.type === 'file' || unixfs?.type === 'raw' ? Number(unixfs.fileSize()) : undefined;
}

/** What of the file is asked for: nothing, a part, or all of it. */
function partOf(
  { scope, bytes }: Selection,
  root: Block,
  node: PBNode | undefined,
): { scope: DagScope; range: ByteRange | undefined } {
  const size = bytes && sizeOf(root, node);
  if (!bytes || size === undefined) return { scope, range: undefined };
  const range = rangeWithin(bytes, size);
  return range ? { scope, range } : { scope: 'block', range: undefined };
}

/**
 * The blocks of a path, then those of the selection at its end: depth first, in the order of the links, each once. Blocks
 * that a CID holds itself are left out. Throws what `read` throws, and NOT_UNIXFS where a block cannot be followed.
 */
export async function* selectBlocks(
  path: readonly BlockId[],
  selection: Selection,
  read: ReadBlock,
): AsyncGenerator<Block> {
  const last = path.at(-1)!;
  const seen = new Set<string>();
  for (const id of path.slice(0, -1)) {
    seen.add(id.text);
    yield { id, bytes: await read(id) };
  }
  let part: ReturnType<typeof partOf> | undefined;
  const left: Place[] = [{ id: last, depth: 0, offset: 0 }];
  for (let place = left.pop(); place; place = left.pop()) {
    const { id, depth, offset } = place;
    if (seen.has(id.text)) continue;
    seen.add(id.text);
    const block = { id, bytes: await read(id) };
    const node = nodeOf(block);
    part ??= partOf(selection, block, node);
    yield block;
    if (!node) continue;
    const links = linksToFollow(node, part.scope, offset, part.range);
    for (const below of placesOf(id, links, depth + 1).reverse()) left.push(below);
    if (depth > IPFS_LIMITS.depth || left.length + seen.size > 2 * IPFS_LIMITS.blocks)
      throw new AppError('NOT_UNIXFS', `${last.text} is too deep, or has too many blocks`);
  }
}

function placesOf(
  id: BlockId,
  links: readonly { readonly link: PBLink; readonly offset: number }[],
  depth: number,
): Place[] {
  return links
    .filter(({ link }) => link.Hash.multihash.code !== IDENTITY)
    .map(({ link, offset }) => {
      const below = findBlockId(link.Hash);
      if (!below) throw new AppError('NOT_UNIXFS', `${id.text} names ${link.Hash}, which is not of UnixFS`);
      return { id: below, depth, offset };
    });
}
