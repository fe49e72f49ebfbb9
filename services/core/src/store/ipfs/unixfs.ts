import {
  type Block,
  type BlockId,
  type FilePart,
  fileNodeOf,
  isFile,
  isShard,
  nodeOf,
  notUnixfs,
  type ReadBlock,
  walkFile,
} from '@skerry/kit/unixfs';
import { AppError } from '@skerry/protocol';
import { findEntry, listEntries } from './directory.ts';
import { streamOf } from './idle.ts';
import type { Ipfs, IpfsNode } from './ipfs.ts';

/** Blocks of a file that are read before they are taken. */
const AHEAD = 4;

/** What a block is: a file or a directory. Throws NOT_UNIXFS. */
function describe(block: Block): IpfsNode {
  const { id, bytes } = block;
  const node = nodeOf(block);
  if (!node) return { id, kind: 'file', sizeBytes: bytes.length };
  const { unixfs, links } = node;
  if (!unixfs || !(isFile(unixfs) || isShard(unixfs) || unixfs.type === 'directory'))
    throw notUnixfs(`${id.text} is no file or directory`);
  const kind = isFile(unixfs) ? 'file' : 'directory';
  const sizeBytes =
    kind === 'file' ? Number(unixfs.fileSize()) : links.reduce((sum, { Tsize = 0 }) => sum + Tsize, 0);
  if (!Number.isSafeInteger(sizeBytes)) throw notUnixfs(`${id.text} says that it is endless`);
  return { id, kind, sizeBytes };
}

/** What lies at a path. Names are taken as they are: none is a pattern, and `..` is a name like any other. */
async function resolve(root: BlockId, path: readonly string[], read: ReadBlock): Promise<Block> {
  let block: Block = { id: root, bytes: await read(root) };
  for (const name of path) {
    const id = await findEntry(block, name, read);
    if (!id) throw new AppError('FILE_NOT_FOUND', `the path leads to nothing below ${root.text}`);
    block = { id, bytes: await read(id) };
  }
  return block;
}

/** What reads of files and directories are to every adapter that can read one block. */
export function createUnixfs(
  readBlock: (id: BlockId, signal: AbortSignal) => Promise<Uint8Array>,
): Pick<Ipfs, 'stat' | 'read' | 'list'> {
  /** What is kept here comes whether anybody waits for it or not. */
  const readerFor =
    (signal: AbortSignal): ReadBlock =>
    async (id) => {
      signal.throwIfAborted();
      const bytes = await readBlock(id, signal);
      signal.throwIfAborted();
      return bytes;
    };
  return {
    stat: async (id, path, signal) => describe(await resolve(id, path, readerFor(signal))),
    async read(id, range, signal) {
      const gone = new AbortController();
      const read = readerFor(AbortSignal.any([signal, gone.signal]));
      const readNode = async (one: BlockId) => fileNodeOf({ id: one, bytes: await read(one) });
      const parts = { read: (part: FilePart) => readNode(part.id), ahead: AHEAD };
      return streamOf(walkFile(id, await readNode(id), parts, range), () => gone.abort());
    },
    async list(id, limit, signal) {
      const read = readerFor(signal);
      const block = { id, bytes: await read(id) };
      const node = describe(block).kind === 'directory' ? nodeOf(block) : undefined;
      if (!node) throw notUnixfs(`${id.text} is no directory`);
      return listEntries(node, limit, read);
    },
  };
}
