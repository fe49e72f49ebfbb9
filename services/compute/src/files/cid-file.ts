import { buffer } from 'node:stream/consumers';
import { setImmediate } from 'node:timers/promises';
import type { CoreClient } from '@skerry/client';
import {
  type BlockId,
  digestOfBlock,
  type FileNode,
  type FilePart,
  fileNodeOf,
  isLeaf,
  leafOf,
  notUnixfs,
  parseBlockId,
  walkFile,
} from '@skerry/kit/unixfs';
import { AppError } from '@skerry/protocol';
import { ByteQueue } from './byte-queue.ts';
import { asBrokenOff, bytesOf } from './file-bytes.ts';
import { limited } from './limited.ts';

/** Where files of IPFS come from. Nothing that it sends is believed. */
export type CidSource = Pick<CoreClient, 'getFile' | 'getIpfsBlock'>;

/** The largest block that others pass on; leaves are smaller. */
const BLOCK_BYTES_MAX = 2 * 1024 * 1024;
/** After so many parts whoever else waits has a turn: what is hashed from memory brings no pause by itself. */
const PARTS_PER_TURN = 256;

const corrupt = (text: string) =>
  new AppError('FILE_CORRUPT', `the core node sent the wrong bytes for the file ${text}`);

/**
 * One file of IPFS. Its bytes come as one stream; of its blocks only those are fetched that name others, since what
 * the leaves are follows from the bytes themselves.
 */
class CidFile {
  readonly #source: CidSource;
  readonly #id: BlockId;
  #parts = 0;

  constructor(source: CidSource, id: BlockId) {
    this.#source = source;
    this.#id = id;
  }

  root(): Promise<FileNode> {
    return this.#fetch(this.#id);
  }

  async *bytes(root: FileNode): AsyncGenerator<Uint8Array> {
    if (root.parts.length === 0) {
      yield root.data;
      return;
    }
    const { text } = this.#id;
    await using queue = new ByteQueue(bytesOf(this.#source, text, await this.#source.getFile(text)));
    await this.#expect(queue, root.data);
    // The queue gives bytes in order: no part can be read ahead of the one before it.
    yield* walkFile(this.#id, root, { read: (part) => this.#read(part, queue), ahead: 0 });
    if ((await queue.take(1)) !== undefined) throw corrupt(this.#id.text);
  }

  async #fetch(id: BlockId): Promise<FileNode> {
    const response = await this.#source.getIpfsBlock(id.text);
    const body = limited(response.body ?? [], BLOCK_BYTES_MAX, 'a block of IPFS');
    const bytes = await buffer(body).catch((error: unknown) => {
      throw asBrokenOff(id.text, error);
    });
    if (digestOfBlock(bytes) !== id.digest) throw corrupt(this.#id.text);
    return fileNodeOf({ id, bytes });
  }

  async #expect(queue: ByteQueue, data: Uint8Array): Promise<void> {
    if (data.length > 0 && !(await queue.take(data.length))?.equals(data)) throw corrupt(this.#id.text);
  }

  async #read({ id, sizeBytes }: FilePart, queue: ByteQueue): Promise<FileNode> {
    if (++this.#parts % PARTS_PER_TURN === 0) await setImmediate();
    const leaf = sizeBytes <= BLOCK_BYTES_MAX ? await queue.take(sizeBytes) : undefined;
    if (leaf && isLeaf(id, leaf)) return leafOf(leaf);
    if (leaf) queue.giveBack(leaf);
    const node = await this.#fetch(id);
    await this.#expect(queue, node.data);
    return node;
  }
}

/**
 * A file of IPFS, each piece checked by the CID before it is given. Throws FILE_CORRUPT, NOT_UNIXFS, FILE_TOO_LARGE,
 * UPSTREAM_UNAVAILABLE, and what the core node answers.
 */
export async function openCidFile(
  source: CidSource,
  text: string,
): Promise<{ sizeBytes: number; bytes: AsyncIterable<Uint8Array> }> {
  const id = parseBlockId(text);
  if (!id) throw notUnixfs(`${text} is of a hash or codec that is not read`);
  const file = new CidFile(source, id);
  const root = await file.root();
  return { sizeBytes: root.sizeBytes, bytes: file.bytes(root) };
}
