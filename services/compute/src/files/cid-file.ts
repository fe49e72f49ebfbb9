import { createHash } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import { setImmediate } from 'node:timers/promises';
import { decode, encode } from '@ipld/dag-pb';
import type { CoreClient } from '@skerry/client';
import { AppError } from '@skerry/protocol';
import { UnixFS } from 'ipfs-unixfs';
import { CID } from 'multiformats/cid';
import { ByteQueue } from './byte-queue.ts';
import { limited } from './limited.ts';

/** Where files of IPFS come from. Nothing that it sends is believed. */
export type CidSource = Pick<CoreClient, 'getFile' | 'getIpfsBlock'>;

/** Multicodec table. */
const DAG_PB = 0x70;
const RAW = 0x55;
const SHA2_256 = 0x12;
/** The largest block that others pass on; leaves are smaller. */
const BLOCK_BYTES_MAX = 2 * 1024 * 1024;
/** What a file may be made of: each of its parts is looked at, and a few blocks may name each other without end. */
const DEPTH_MAX = 32;
const NODES_MAX = 10_000;
const PARTS_MAX = 1_000_000;
/** After so many parts whoever else waits has a turn: those without bytes bring no pause by themselves. */
const PARTS_PER_TURN = 256;

interface Block {
  readonly cid: CID;
  readonly digest: string;
  readonly isRaw: boolean;
}

/** A node of UnixFS that is a file, or a part of one: bytes of its own, then its parts. */
interface FileNode {
  readonly data: Uint8Array;
  readonly parts: readonly { readonly block: Block; readonly sizeBytes: number }[];
}

const sha256Of = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');
const corrupt = (text: string) =>
  new AppError('FILE_CORRUPT', `the core node sent the wrong bytes for the file ${text}`);
const notFile = (text: string, cause?: unknown) =>
  new AppError('NOT_UNIXFS', `${text} cannot be read as a file`, { cause });

function blockOf(cid: CID): Block {
  const { code, multihash } = cid;
  if ((code !== DAG_PB && code !== RAW) || multihash.code !== SHA2_256) throw notFile(`${cid}`);
  return { cid, digest: Buffer.from(multihash.digest).toString('hex'), isRaw: code === RAW };
}

function parseNode({ cid, isRaw }: Block, bytes: Uint8Array): FileNode {
  if (isRaw) return { data: bytes, parts: [] };
  let node: ReturnType<typeof decode>;
  let file: UnixFS;
  try {
    node = decode(bytes);
    file = UnixFS.unmarshal(node.Data ?? new Uint8Array());
  } catch (error) {
    throw notFile(`${cid}`, error);
  }
  if ((file.type !== 'file' && file.type !== 'raw') || file.blockSizes.length !== node.Links.length)
    throw notFile(`${cid}`);
  const sizes = file.blockSizes.map(Number);
  if (!sizes.every(Number.isSafeInteger)) throw notFile(`${cid}`);
  const parts = node.Links.map(({ Hash }, index) => ({ block: blockOf(Hash), sizeBytes: sizes[index]! }));
  return { data: file.data ?? new Uint8Array(), parts };
}

/** The two ways in which software wraps a leaf's bytes. */
const leafDigests = (data: Uint8Array) =>
  (['file', 'raw'] as const).map((type) =>
    sha256Of(encode({ Data: new UnixFS({ type, data }).marshal(), Links: [] })),
  );

const isLeaf = ({ digest, isRaw }: Block, data: Uint8Array) =>
  isRaw ? sha256Of(data) === digest : leafDigests(data).includes(digest);

/**
 * One file of IPFS. Its bytes come as one stream; of its blocks only those are fetched that name others, since what
 * the leaves are follows from the bytes themselves.
 */
class CidFile {
  readonly #source: CidSource;
  readonly #text: string;
  readonly #partsMax: number;
  #nodes = 0;
  #parts = 0;
  #seen = 0;

  constructor(source: CidSource, text: string, partsMax: number) {
    this.#source = source;
    this.#text = text;
    this.#partsMax = partsMax;
  }

  async node(block: Block): Promise<FileNode> {
    if (++this.#nodes > NODES_MAX)
      throw new AppError('FILE_TOO_LARGE', `${this.#text} has more than ${NODES_MAX} inner blocks`);
    const response = await this.#source.getIpfsBlock(block.cid.toString());
    const bytes = await buffer(limited(response.body ?? [], BLOCK_BYTES_MAX, 'a block of IPFS'));
    if (sha256Of(bytes) !== block.digest) throw corrupt(this.#text);
    const node = parseNode(block, bytes);
    this.#parts += node.parts.length;
    if (this.#parts > this.#partsMax)
      throw new AppError('FILE_TOO_LARGE', `${this.#text} has more than ${this.#partsMax} parts`);
    return node;
  }

  async *bytes(root: FileNode): AsyncGenerator<Uint8Array> {
    if (root.parts.length === 0) {
      yield root.data;
      return;
    }
    const { body } = await this.#source.getFile(this.#text);
    await using queue = new ByteQueue(body ?? (async function* () {})());
    yield* this.#walk(root, queue, 1);
    if ((await queue.take(1)) !== undefined) throw corrupt(this.#text);
  }

  async *#walk({ data, parts }: FileNode, queue: ByteQueue, depth: number): AsyncGenerator<Uint8Array> {
    if (depth > DEPTH_MAX) throw notFile(this.#text);
    if (data.length > 0) {
      if (!(await queue.take(data.length))?.equals(data)) throw corrupt(this.#text);
      yield data;
    }
    for (const { block, sizeBytes } of parts) {
      if (++this.#seen % PARTS_PER_TURN === 0) await setImmediate();
      const leaf = sizeBytes <= BLOCK_BYTES_MAX ? await queue.take(sizeBytes) : undefined;
      if (leaf && isLeaf(block, leaf)) yield leaf;
      else {
        if (leaf) queue.giveBack(leaf);
        yield* this.#walk(await this.node(block), queue, depth + 1);
      }
    }
  }
}

/**
 * A file of IPFS, each piece checked by the CID before it is given. Throws FILE_CORRUPT, NOT_UNIXFS, FILE_TOO_LARGE, and
 * what the core node answers.
 */
export async function openCidFile(
  source: CidSource,
  text: string,
  partsMax = PARTS_MAX,
): Promise<{ sizeBytes: number; bytes: AsyncIterable<Uint8Array> }> {
  const file = new CidFile(source, text, partsMax);
  const root = await file.node(blockOf(CID.parse(text)));
  const sizeBytes = root.parts.reduce((sum, part) => sum + part.sizeBytes, root.data.length);
  return { sizeBytes, bytes: file.bytes(root) };
}
