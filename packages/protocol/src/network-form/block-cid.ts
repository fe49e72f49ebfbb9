import { base58 } from '@scure/base';
import { sha256Hex } from '../hash.ts';
import { hexToBytes } from '../hex.ts';

/** A file of at most so many bytes is one block, as IPFS adds files. */
const BLOCK_BYTES = 256 * 1024;
/** SHA-256, 32 bytes (multihash table). */
const SHA2_256 = [0x12, 32];
/** Fields of UnixFS `Data` and of a dag-pb node, and the type of a file. */
const FIELD = { type: 0x08, data: 0x12, size: 0x18, node: 0x0a } as const;
const FILE = 2;

function varint(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  for (; rest > 0x7f; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 0x80);
  return [...bytes, rest];
}

/** The CID, version 0, of a file that is one block; undefined of a larger one. */
export function cidOfBlock(bytes: Uint8Array): string | undefined {
  if (bytes.length === 0 || bytes.length > BLOCK_BYTES) return undefined;
  const size = varint(bytes.length);
  const head = [FIELD.type, FILE, FIELD.data, ...size];
  const tail = [FIELD.size, ...size];
  const inner = head.length + bytes.length + tail.length;
  const before = [FIELD.node, ...varint(inner), ...head];
  const block = new Uint8Array(before.length + bytes.length + tail.length);
  block.set(before);
  block.set(bytes, before.length);
  block.set(tail, before.length + bytes.length);
  return base58.encode(new Uint8Array([...SHA2_256, ...hexToBytes(sha256Hex(block))!]));
}
