import { base58 } from '@scure/base';
import { sha256Hex } from '../hash.ts';
import { hexToBytes } from '../hex.ts';

/** As IPFS adds files by default (`unixfs-v0-2015`): leaves of so many bytes, and nodes of so many links. */
const BLOCK_BYTES = 256 * 1024;
const LINKS_MAX = 174;
/** SHA-256, 32 bytes (multihash table). */
const SHA2_256 = [0x12, 32];
/** Fields of UnixFS `Data`, of a dag-pb node and of its links, and the type of a file. */
const FIELD = { type: 0x08, data: 0x12, size: 0x18, blockSize: 0x20 } as const;
const NODE = { data: 0x0a, link: 0x12 } as const;
const LINK = { hash: 0x0a, name: 0x12, size: 0x18 } as const;
const FILE = 2;

function varint(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  for (; rest > 0x7f; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 0x80);
  return [...bytes, rest];
}

function joined(parts: readonly (Uint8Array | readonly number[])[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** A node of the tree that a file becomes. */
interface TreeNode {
  readonly multihash: Uint8Array;
  /** Of the file below it. */
  readonly fileBytes: number;
  /** Of its block and of those below it. */
  readonly treeBytes: number;
}

function nodeOf(block: Uint8Array, fileBytes: number, below: number): TreeNode {
  const multihash = new Uint8Array([...SHA2_256, ...hexToBytes(sha256Hex(block))!]);
  return { multihash, fileBytes, treeBytes: block.length + below };
}

function leafOf(bytes: Uint8Array): TreeNode {
  const size = varint(bytes.length);
  const head = [FIELD.type, FILE, FIELD.data, ...size];
  const tail = [FIELD.size, ...size];
  const inner = varint(head.length + bytes.length + tail.length);
  return nodeOf(joined([[NODE.data, ...inner, ...head], bytes, tail]), bytes.length, 0);
}

function parentOf(nodes: readonly TreeNode[]): TreeNode {
  const links = nodes.map(({ multihash, treeBytes }) => {
    const link = [LINK.hash, ...varint(multihash.length), ...multihash, LINK.name, 0];
    link.push(LINK.size, ...varint(treeBytes));
    return [NODE.link, ...varint(link.length), ...link];
  });
  const fileBytes = nodes.reduce((sum, node) => sum + node.fileBytes, 0);
  const sizes = nodes.flatMap((node) => [FIELD.blockSize, ...varint(node.fileBytes)]);
  const data = [FIELD.type, FILE, FIELD.size, ...varint(fileBytes), ...sizes];
  const block = joined([...links, [NODE.data, ...varint(data.length)], data]);
  const below = nodes.reduce((sum, node) => sum + node.treeBytes, 0);
  return nodeOf(block, fileBytes, below);
}

const groupsOf = <T>(all: readonly T[], size: number): T[][] =>
  Array.from({ length: Math.ceil(all.length / size) }, (_, at) => all.slice(at * size, (at + 1) * size));

/** Whether `cidOfFile` can compute it: IPFS cuts a file in one way only where it gives CIDs of version 0, by default. */
export const isFileCid = (cid: string): boolean => cid.startsWith('Qm');

/** The CID, version 0, that a file gets where it is added to IPFS by default; undefined of an empty one. */
export function cidOfFile(bytes: Uint8Array): string | undefined {
  if (bytes.length === 0) return undefined;
  let level = Array.from({ length: Math.ceil(bytes.length / BLOCK_BYTES) }, (_, at) =>
    leafOf(bytes.subarray(at * BLOCK_BYTES, (at + 1) * BLOCK_BYTES)),
  );
  while (level.length > 1) level = groupsOf(level, LINKS_MAX).map(parentOf);
  return base58.encode(level[0]!.multihash);
}
