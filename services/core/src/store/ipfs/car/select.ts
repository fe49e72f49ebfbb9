import {
  type Block,
  type BlockId,
  type DagLink,
  type DagNode,
  isFile,
  isShard,
  isWithin,
  nodeOf,
  notUnixfs,
  placeParts,
  type ReadBlock,
  refuseLink,
} from '@skerry/kit/unixfs';
import type { ByteRange } from '../../files/blob-store.ts';
import { packCid, unpackId } from '../cid.ts';
import { linksToShards } from '../directory.ts';
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

const IDENTITY = 0x00;

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

interface Place {
  readonly packed: string;
  readonly depth: number;
  /** Where its first byte is in the file. */
  readonly offset: number;
}

type Followed = readonly { readonly link: DagLink; readonly offset: number }[];

function linksToFollow(
  node: DagNode,
  scope: DagScope,
  offset: number,
  range: ByteRange | undefined,
): Followed {
  if (scope === 'block') return [];
  const { links, unixfs } = node;
  const whole = (some: DagNode['links']) => some.map((link) => ({ link, offset: 0 }));
  if (scope === 'all') return whole(links);
  if (!unixfs) return [];
  if (isFile(unixfs))
    return placeParts(links, unixfs)
      .filter((part) => !range || isWithin(part, offset, range))
      .map((part) => ({ link: part.link, offset: offset + part.offset }));
  return isShard(unixfs) ? whole(linksToShards(node)) : [];
}

/** How many bytes the file has whose root this is; undefined where it is no file. */
function sizeOf(root: Block, node: DagNode | undefined): number | undefined {
  if (!node) return root.bytes.length;
  const { unixfs } = node;
  return unixfs && isFile(unixfs) ? Number(unixfs.fileSize()) : undefined;
}

/** What of the file is asked for: nothing, a part, or all of it. */
function partOf(
  { scope, bytes }: Selection,
  root: Block,
  node: DagNode | undefined,
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
    seen.add(packCid(id.cid)!);
    yield { id, bytes: await read(id) };
  }
  let part: ReturnType<typeof partOf> | undefined;
  const left: Place[] = [{ packed: packCid(last.cid)!, depth: 0, offset: 0 }];
  for (let place = left.pop(); place; place = left.pop()) {
    const { packed, depth, offset } = place;
    if (seen.has(packed)) continue;
    seen.add(packed);
    const id = unpackId(packed);
    const block = { id, bytes: await read(id) };
    const node = nodeOf(block);
    part ??= partOf(selection, block, node);
    yield block;
    if (!node) continue;
    const links = linksToFollow(node, part.scope, offset, part.range);
    for (const below of placesOf(id, links, depth + 1).reverse()) left.push(below);
    if (depth > IPFS_LIMITS.depth || left.length > IPFS_LIMITS.links || seen.size > IPFS_LIMITS.blocks)
      throw notUnixfs(`${last.text} is too deep, or has too many blocks`);
  }
}

function placesOf(id: BlockId, links: Followed, depth: number): Place[] {
  return links
    .filter(({ link }) => link.Hash.multihash.code !== IDENTITY)
    .map(({ link, offset }) => ({ packed: packCid(link.Hash) ?? refuseLink(id, link), depth, offset }));
}
