import type { BlockId } from './block-id.ts';
import { type FileNode, type FilePart, type FileRange, isWithin } from './file.ts';
import { notUnixfs } from './node.ts';

/** Beside so many parts that are read, and so many that are named, each has to bring bytes: a few blocks can name each other without end. */
const PARTS_FREE = 4_096;
const NAMED_FREE = 200_000;
const PART_BYTES_MIN = 512;
/** Links from a root to a leaf. */
const DEPTH_MAX = 32;

/** Where a walk has the parts of a file from. */
export interface FileParts {
  /** The part, checked by its CID. */
  readonly read: (part: FilePart) => Promise<FileNode>;
  /** Parts that are read before they are taken. With 0, each is read after all bytes that come before it were taken. */
  readonly ahead: number;
}

/** Bytes of a node that begin at a place of the file, as far as they are asked for. */
const cut = (bytes: Uint8Array, at: number, { first, last }: FileRange) =>
  bytes.subarray(Math.max(0, first - at), Math.max(0, last + 1 - at));

class FileWalk {
  readonly #root: BlockId;
  readonly #source: FileParts;
  readonly #range: FileRange;
  #ahead = 0;
  #read = 0;
  #named = 0;
  #bytes = 0;

  constructor(root: BlockId, source: FileParts, range: FileRange) {
    this.#root = root;
    this.#source = source;
    this.#range = range;
  }

  #count(): void {
    const brought = this.#bytes / PART_BYTES_MIN;
    if (this.#read > PARTS_FREE + brought || this.#named > NAMED_FREE + brought)
      throw notUnixfs(`${this.#root.text} is a file of pieces that are too small to be read`);
  }

  async *walk({ data, parts }: FileNode, start: number, depth: number): AsyncGenerator<Uint8Array> {
    this.#named += parts.length;
    this.#count();
    const own = cut(data, start, this.#range);
    this.#bytes += own.length;
    if (own.length > 0) yield own;
    // What has no bytes is not looked at, whatever it is said to be made of.
    const asked = parts.filter((part) => part.sizeBytes > 0 && isWithin(part, start, this.#range));
    if (asked.length > 0 && depth === DEPTH_MAX)
      throw notUnixfs(`${this.#root.text} is deeper than ${DEPTH_MAX} links`);
    const reads: Promise<FileNode>[] = [];
    for (const [index, { id, offset, sizeBytes }] of asked.entries()) {
      while (reads.length === 0 || (this.#ahead < this.#source.ahead && index + reads.length < asked.length))
        reads.push(this.#begin(asked[index + reads.length]!));
      const node = await reads.shift()!;
      this.#ahead--;
      if (node.sizeBytes !== sizeBytes)
        throw notUnixfs(`${id.text} is not of the size that it is said to have`);
      yield* this.walk(node, start + offset, depth + 1);
    }
  }

  #begin(part: FilePart): Promise<FileNode> {
    this.#read++;
    this.#count();
    this.#ahead++;
    const read = this.#source.read(part);
    // It may fail before it is waited for, or never be.
    read.catch(() => {});
    return read;
  }
}

/**
 * The bytes of a file of UnixFS, or of a range of it, in order. Memory is bounded, whatever the blocks are, and a part that cannot be had
 * ends the reading alone. Throws NOT_UNIXFS, and what reading a part throws.
 * @param id of the root, for what is said of it
 */
export function walkFile(
  id: BlockId,
  root: FileNode,
  source: FileParts,
  range: FileRange = { first: 0, last: root.sizeBytes - 1 },
): AsyncGenerator<Uint8Array> {
  return new FileWalk(id, source, range).walk(root, 0, 0);
}
