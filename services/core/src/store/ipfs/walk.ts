import { type BlockId, nodeOf, refuseLink } from '@skerry/kit/unixfs';
import { AppError } from '@skerry/protocol';
import { digestOfPacked, packCid, unpackId } from './cid.ts';
import { IPFS_LIMITS } from './limits.ts';

/** Blocks that are noted at once. */
const NOTED = 5_000;

/** The blocks that a block names, packed. Throws NOT_UNIXFS where it is malformed, or names what cannot be kept here. */
const linksOf = (id: BlockId, bytes: Uint8Array): string[] =>
  (nodeOf({ id, bytes })?.links ?? []).map((link) => packCid(link.Hash) ?? refuseLink(id, link));

export interface WalkOptions {
  readonly limitBytes: number;
  readonly signal: AbortSignal;
  /** Told of blocks before they are asked for, so that they can be noted. */
  readonly note: (digests: readonly string[]) => Promise<void>;
  readonly obtain: (id: BlockId) => Promise<Uint8Array>;
}

/** Goes through every block below a root, each once, many at the same time. @returns bytes of all blocks */
export async function walkDag(root: BlockId, options: WalkOptions): Promise<number> {
  let level: string[] = [packCid(root.cid)!];
  // One digest may be of bare bytes and of a node that links to others.
  const seen = new Set(level);
  let bytes = 0;
  const add = (size: number) => {
    bytes += size;
    if (bytes > options.limitBytes)
      throw new AppError('FILE_TOO_LARGE', `${root.text} has more than ${options.limitBytes} bytes`);
  };
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > IPFS_LIMITS.depth)
      throw new AppError('NOT_UNIXFS', `${root.text} is deeper than ${IPFS_LIMITS.depth} links`);
    for (let at = 0; at < level.length; at += NOTED)
      await options.note(level.slice(at, at + NOTED).map(digestOfPacked));
    const next: string[] = [];
    await inParallel(level, async (packed) => {
      options.signal.throwIfAborted();
      const id = unpackId(packed);
      const block = await options.obtain(id);
      add(block.length);
      for (const link of linksOf(id, block)) {
        if (seen.has(link)) continue;
        seen.add(link);
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
