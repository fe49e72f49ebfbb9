import { AppError } from '@skerry/protocol';
import { exporter, type UnixFSDirectory, type UnixFSEntry, walkPath } from 'ipfs-unixfs-exporter';
import type { BlockId } from './cid.ts';
import { FileContent, needBlockId, notUnixfs } from './file-content.ts';
import { streamOf } from './idle.ts';
import type { Ipfs, IpfsEntry, IpfsNode } from './ipfs.ts';

type Reader = Parameters<typeof exporter>[1];

const nothingAt = (text: string, cause?: unknown) =>
  new AppError('FILE_NOT_FOUND', `the path leads to nothing below ${text}`, { cause });

/** What the reader of blocks threw is passed on; anything else says that the blocks make no sense. */
function asReadError(error: unknown, text: string, signal: AbortSignal): unknown {
  if (error instanceof AppError || signal.aborted) return error;
  const { name } = error as Error;
  if (name === 'NotFoundError') return nothingAt(text, error);
  return notUnixfs(`${text} cannot be read as a file or directory`, error);
}

function nodeOf(entry: UnixFSEntry): IpfsNode {
  const id = needBlockId(entry.cid);
  if (entry.type === 'directory') {
    const sizeBytes = entry.node.Links.reduce((sum, link) => sum + (link.Tsize ?? 0), 0);
    if (!Number.isSafeInteger(sizeBytes)) throw notUnixfs(`${entry.cid} says that it is endless`);
    return { id, kind: 'directory', sizeBytes };
  }
  if (entry.type === 'raw') return { id, kind: 'file', sizeBytes: entry.node.length };
  if (entry.type !== 'file') throw notUnixfs(`${entry.cid} is no file or directory`);
  if (entry.size > BigInt(Number.MAX_SAFE_INTEGER)) throw notUnixfs(`${entry.cid} says that it is endless`);
  return { id, kind: 'file', sizeBytes: Number(entry.size) };
}

/** What lies at a path. Names are taken as they are: none is a pattern, and `..` is a name like any other. */
async function resolve(
  id: BlockId,
  path: readonly string[],
  reader: Reader,
  signal: AbortSignal,
): Promise<UnixFSEntry> {
  try {
    if (path.length === 0) return await exporter(id.cid, reader, { signal });
    const whole = `${id.text}/${path.join('/')}`;
    let steps = 0;
    let last: { cid: BlockId['cid'] } | undefined;
    for await (const entry of walkPath(whole, reader, { signal })) {
      last = entry;
      steps++;
    }
    // Below a file there is nothing, whatever the path says.
    if (!last || steps !== path.length + 1) throw nothingAt(id.text);
    return await exporter(last.cid, reader, { signal });
  } catch (error) {
    throw asReadError(error, id.text, signal);
  }
}

async function* contentOf(
  content: AsyncIterable<Uint8Array>,
  text: string,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  try {
    yield* content;
  } catch (error) {
    throw asReadError(error, text, signal);
  }
}

async function listEntries(
  entry: UnixFSDirectory,
  limit: number,
  text: string,
  signal: AbortSignal,
): Promise<IpfsEntry[]> {
  const entries: IpfsEntry[] = [];
  try {
    for await (const { name, cid, size } of entry.entries({ signal })) {
      if (entries.length >= limit) break;
      entries.push({ name, cid: cid.toString(), sizeBytes: Number(size) });
    }
  } catch (error) {
    throw asReadError(error, text, signal);
  }
  return entries;
}

/** What reads of files and directories are to every adapter that can read one block. */
export function createUnixfs(
  readBlock: (id: BlockId, signal: AbortSignal) => Promise<Uint8Array>,
): Pick<Ipfs, 'stat' | 'read' | 'list'> {
  const readerFor = (signal: AbortSignal): Reader => ({
    async *get(cid) {
      yield await readBlock(needBlockId(cid), signal);
    },
  });
  return {
    stat: async (id, path, signal) => nodeOf(await resolve(id, path, readerFor(signal), signal)),
    async read(id, range, signal) {
      const gone = new AbortController();
      const ended = AbortSignal.any([signal, gone.signal]);
      // Not the exporter: it reads all at once, however slowly it is taken, and a block far below that fails ends the process.
      const file = new FileContent(id, (one) => readBlock(one, ended));
      const root = await file.open().catch((error: unknown) => {
        throw asReadError(error, id.text, ended);
      });
      return streamOf(contentOf(file.bytes(root, range), id.text, ended), () => gone.abort());
    },
    async list(id, limit, signal) {
      const entry = await resolve(id, [], readerFor(signal), signal);
      if (entry.type !== 'directory') throw notUnixfs(`${id.text} is no directory`);
      return listEntries(entry, limit, id.text, signal);
    },
  };
}
