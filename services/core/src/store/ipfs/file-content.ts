import { decode } from '@ipld/dag-pb';
import type { AppError } from '@skerry/protocol';
import { UnixFS } from 'ipfs-unixfs';
import type { ByteRange } from '../files/blob-store.ts';
import { type BlockId, findBlockId } from './cid.ts';
import { notUnixfs } from './unixfs/node.ts';

/** Blocks that are read before they are taken. */
const AHEAD = 4;
/** Beside so many blocks, and links of blocks, each has to bring bytes: a file in smaller pieces keeps the node busy for nothing. */
const BLOCKS_FREE = 4_096;
const LINKS_FREE = 200_000;
const PIECE_BYTES_MIN = 512;
/** Links from a root to a leaf. */
const DEPTH_MAX = 32;

interface Part {
  readonly id: BlockId;
  /** Where it begins in what it is a part of. */
  readonly offset: number;
  readonly sizeBytes: number;
}

/** A block that is a file, or a part of one: bytes of its own, then its parts. */
interface FileNode {
  readonly data: Uint8Array;
  readonly parts: readonly Part[];
  readonly sizeBytes: number;
}

/** Throws NOT_UNIXFS. */
function needBlockId(cid: BlockId['cid']): BlockId {
  const id = findBlockId(cid);
  if (!id) throw notUnixfs(`${cid} is of a hash or codec that is not read here`);
  return id;
}

function unmarshal({ text }: BlockId, bytes: Uint8Array) {
  try {
    const { Data, Links } = decode(bytes);
    const file = UnixFS.unmarshal(Data ?? new Uint8Array());
    return { file, links: Links };
  } catch (error) {
    throw notUnixfs(`${text} cannot be read as a file or directory`, error);
  }
}

function parseNode(id: BlockId, bytes: Uint8Array): FileNode {
  if (id.isRaw) return { data: bytes, parts: [], sizeBytes: bytes.length };
  const { file, links } = unmarshal(id, bytes);
  if (file.type !== 'file' && file.type !== 'raw') throw notUnixfs(`${id.text} is no file`);
  if (file.blockSizes.length !== links.length)
    throw notUnixfs(`${id.text} cannot be read as a file or directory`);
  const data = file.data ?? new Uint8Array();
  let sizeBytes = data.length;
  const parts = links.map(({ Hash }, index) => {
    const part = { id: needBlockId(Hash), offset: sizeBytes, sizeBytes: Number(file.blockSizes[index]) };
    sizeBytes += part.sizeBytes;
    return part;
  });
  if (!Number.isSafeInteger(sizeBytes)) throw notUnixfs(`${id.text} says that it is endless`);
  return { data, parts, sizeBytes };
}

/** Bytes that begin at a place of the file, as far as they are asked for. */
const cut = (bytes: Uint8Array, at: number, { first, last }: ByteRange) =>
  bytes.subarray(Math.max(0, first - at), Math.max(0, last + 1 - at));

/**
 * Reads a file of IPFS as fast as its bytes are taken, and holds no more of it. Whatever its blocks are, and whichever of them
 * cannot be had, only the reading ends.
 */
export class FileContent {
  readonly #id: BlockId;
  readonly #readBlock: (id: BlockId) => Promise<Uint8Array>;
  #ahead = 0;
  #blocks = 0;
  #links = 0;
  #bytes = 0;

  constructor(id: BlockId, readBlock: (id: BlockId) => Promise<Uint8Array>) {
    this.#id = id;
    this.#readBlock = readBlock;
  }

  /** The root of the file. Throws NOT_UNIXFS, and what reading a block throws. */
  async open(): Promise<FileNode> {
    return parseNode(this.#id, await this.#read(this.#id));
  }

  /** Throws the same. */
  bytes(
    root: FileNode,
    range: ByteRange = { first: 0, last: root.sizeBytes - 1 },
  ): AsyncGenerator<Uint8Array> {
    return this.#walk(root, 0, range, 0);
  }

  #tooSmall(): AppError {
    return notUnixfs(`${this.#id.text} is a file of pieces that are too small to be read`);
  }

  async #read(id: BlockId): Promise<Uint8Array> {
    if (++this.#blocks > BLOCKS_FREE + this.#bytes / PIECE_BYTES_MIN) throw this.#tooSmall();
    return this.#readBlock(id);
  }

  async *#walk(
    { data, parts }: FileNode,
    start: number,
    range: ByteRange,
    depth: number,
  ): AsyncGenerator<Uint8Array> {
    this.#links += parts.length;
    if (this.#links > LINKS_FREE + this.#bytes / PIECE_BYTES_MIN) throw this.#tooSmall();
    if (depth > DEPTH_MAX) throw notUnixfs(`${this.#id.text} is deeper than ${DEPTH_MAX} links`);
    const own = cut(data, start, range);
    this.#bytes += own.length;
    if (own.length > 0) yield own;
    const asked = parts.filter(
      ({ offset, sizeBytes }) =>
        sizeBytes > 0 && start + offset <= range.last && start + offset + sizeBytes > range.first,
    );
    const reads: Promise<Uint8Array>[] = [];
    for (const [index, { id, offset, sizeBytes }] of asked.entries()) {
      while (reads.length === 0 || (this.#ahead < AHEAD && index + reads.length < asked.length)) {
        const read = this.#read(asked[index + reads.length]!.id);
        // It may fail before it is waited for, or never be.
        read.catch(() => {});
        reads.push(read);
        this.#ahead++;
      }
      const bytes = await reads.shift()!;
      this.#ahead--;
      const node = parseNode(id, bytes);
      if (node.sizeBytes !== sizeBytes)
        throw notUnixfs(`${id.text} is not of the size that it is said to have`);
      yield* this.#walk(node, start + offset, range, depth + 1);
    }
  }
}
