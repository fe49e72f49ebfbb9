import { decode } from '@ipld/dag-pb';
import { AppError } from '@skerry/protocol';
import { type BlockId, findBlockId } from './cid.ts';
import { IPFS_LIMITS } from './limits.ts';

/** The blocks that a block names. Throws NOT_UNIXFS where it is malformed, or names what cannot be kept here. */
function linksOf(id: BlockId, bytes: Uint8Array): BlockId[] {
  if (id.isRaw) return [];
  let links: ReturnType<typeof decode>['Links'];
  try {
    links = decode(bytes).Links;
  } catch (cause) {
    throw new AppError('NOT_UNIXFS', `the block ${id.text} is malformed`, { cause });
  }
  return links.map(({ Hash }) => {
    const link = findBlockId(Hash);
    if (!link) throw new AppError('NOT_UNIXFS', `${id.text} names ${Hash}, which is not of UnixFS`);
    return link;
  });
}

export interface WalkOptions {
  readonly limitBytes: number;
  readonly signal: AbortSignal;
  /** Told of blocks before they are asked for, so that they can be noted. */
  readonly note: (ids: readonly BlockId[]) => Promise<void>;
  readonly obtain: (id: BlockId) => Promise<Uint8Array>;
}

/** Goes through every block below a root, each once, many at the same time. @returns bytes of all blocks */
export async function walkDag(root: BlockId, options: WalkOptions): Promise<number> {
  const seen = new Set([root.digest]);
  let level: BlockId[] = [root];
  let bytes = 0;
  const add = (size: number) => {
    bytes += size;
    if (bytes > options.limitBytes)
      throw new AppError('FILE_TOO_LARGE', `${root.text} has more than ${options.limitBytes} bytes`);
  };
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > IPFS_LIMITS.depth)
      throw new AppError('NOT_UNIXFS', `${root.text} is deeper than ${IPFS_LIMITS.depth} links`);
    await options.note(level);
    const next: BlockId[] = [];
    await inParallel(level, async (id) => {
      options.signal.throwIfAborted();
      const block = await options.obtain(id);
      add(block.length);
      for (const link of linksOf(id, block)) {
        if (seen.has(link.digest)) continue;
        seen.add(link.digest);
        if (seen.size > IPFS_LIMITS.blocks)
          throw new AppError('FILE_TOO_LARGE', `${root.text} has more than ${IPFS_LIMITS.blocks} blocks`);
        next.push(link);
      }
    });
    level = next;
  }
  return bytes;
}

/** At most `parallelBlocks` at the same time. After a failure no more are begun; those under way are waited for. */
async function inParallel<T>(items: readonly T[], act: (item: T) => Promise<void>): Promise<void> {
  const waiting = items.values();
  let failure: { error: unknown } | undefined;
  const work = async () => {
    for (const item of waiting) {
      if (failure) return;
      try {
        await act(item);
      } catch (error) {
        failure ??= { error };
      }
    }
  };
  await Promise.all(Array.from({ length: IPFS_LIMITS.parallelBlocks }, work));
  if (failure) throw failure.error;
}
