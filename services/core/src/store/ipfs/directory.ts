import { murmur364 } from '@multiformats/murmur3';
import {
  type Block,
  type DagNode,
  findBlockId,
  isShard,
  nodeOf,
  notUnixfs,
  type ReadBlock,
  refuseLink,
} from '@skerry/kit/unixfs';
import type { IpfsEntry } from './ipfs.ts';
import { IPFS_LIMITS } from './limits.ts';

/** Of a name, by which shards are told apart. */
const HASH_BITS = 64;
/** As kubo has it. */
const FANOUT = { usual: 256n, max: 1_024 } as const;

/** A directory's part: so many bits of a name's hash say which of its links leads to the name, and how that link's own name begins. */
interface Shard {
  readonly bits: number;
  /** Of the beginning of a link's name, hexadecimal; a link that has no more is one to a shard below. */
  readonly digits: number;
}

/** Throws NOT_UNIXFS where it is no shard: whoever walks one goes by these numbers. */
function shardOf({ id, links, unixfs }: DagNode): Shard {
  const fanout = Number(unixfs?.fanout ?? FANOUT.usual);
  const isPower = Number.isInteger(fanout) && fanout > 1 && fanout <= FANOUT.max && !(fanout & (fanout - 1));
  if (!unixfs || !isShard(unixfs) || !isPower || links.length > fanout)
    throw notUnixfs(`${id.text} is no shard of a directory`);
  return { bits: 31 - Math.clz32(fanout), digits: (fanout - 1).toString(16).length };
}

/** The links of a shard to shards below it. */
export function linksToShards(node: DagNode): DagNode['links'] {
  const { digits } = shardOf(node);
  return node.links.filter(({ Name }) => Name?.length === digits);
}

async function readNode(node: DagNode, link: DagNode['links'][number], read: ReadBlock): Promise<DagNode> {
  const id = findBlockId(link.Hash) ?? refuseLink(node.id, link);
  const below = nodeOf({ id, bytes: await read(id) });
  if (!below) throw notUnixfs(`${id.text} is no shard of a directory`);
  return below;
}

/**
 * The link of an entry (IPFS specifications, "UnixFS", "HAMT-sharded directories"). The libraries of js-ipfs put every name of a shard
 * into a tree of their own first, which never ends for names that a stranger may choose.
 */
async function findInShards(
  root: DagNode,
  name: string,
  read: ReadBlock,
): Promise<{ node: DagNode; link: DagNode['links'][number] } | undefined> {
  const hash = Buffer.from(await murmur364.encode(Buffer.from(name))).readBigUInt64BE();
  let node = root;
  for (let at = 0; ; ) {
    const { bits, digits } = shardOf(node);
    at += bits;
    if (at > HASH_BITS) throw notUnixfs(`${root.id.text} has shards that are too deep`);
    const place = Number((hash >> BigInt(HASH_BITS - at)) & ((1n << BigInt(bits)) - 1n));
    const prefix = place.toString(16).toUpperCase().padStart(digits, '0');
    const link = node.links.find(({ Name }) => Name === prefix + name);
    if (link) return { node, link };
    const below = node.links.find(({ Name }) => Name === prefix);
    if (!below) return undefined;
    node = await readNode(node, below, read);
  }
}

/** The CID of an entry; undefined where there is none, as below a file. Throws NOT_UNIXFS, and what `read` throws. */
export async function findEntry(block: Block, name: string, read: ReadBlock) {
  const node = nodeOf(block);
  if (!node || name === '') return undefined;
  const { unixfs } = node;
  if (!unixfs) throw notUnixfs(`${block.id.text} is no file or directory`);
  const found = isShard(unixfs)
    ? await findInShards(node, name, read)
    : { node, link: unixfs.type === 'directory' ? node.links.find((one) => one.Name === name) : undefined };
  if (!found?.link) return undefined;
  return findBlockId(found.link.Hash) ?? refuseLink(found.node.id, found.link);
}

const entryOf = (name: string, { Hash, Tsize = 0 }: DagNode['links'][number]): IpfsEntry => ({
  name,
  cid: Hash.toString(),
  sizeBytes: Tsize,
});

/** Entries in the order of the links, at most `limit`. Throws NOT_UNIXFS, and what `read` throws. */
export async function listEntries(root: DagNode, limit: number, read: ReadBlock): Promise<IpfsEntry[]> {
  const { unixfs } = root;
  if (!unixfs || !isShard(unixfs))
    return root.links.slice(0, limit).map((link) => entryOf(link.Name ?? '', link));
  const entries: IpfsEntry[] = [];
  let shards = 0;
  const add = async (node: DagNode, depth: number): Promise<void> => {
    const { digits } = shardOf(node);
    // Each holds an entry at least, or is on the way to one.
    if (++shards > IPFS_LIMITS.entries || depth > HASH_BITS)
      throw notUnixfs(`${root.id.text} has too many shards`);
    for (const link of node.links) {
      if (entries.length >= limit) return;
      const { Name = '' } = link;
      if (Name.length === digits) await add(await readNode(node, link, read), depth + 1);
      else entries.push(entryOf(Name.slice(digits), link));
    }
  };
  await add(root, 0);
  return entries;
}
