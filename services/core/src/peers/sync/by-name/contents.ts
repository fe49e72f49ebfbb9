import { addAbortListener } from 'node:events';
import { isItemHash64, LIMITS } from '@skerry/protocol';
import { isRead } from '../../../intake/accepted.ts';
import type { ReadFrame } from '../../../intake/passed-on.ts';
import type { Files } from '../../../store/files/files.ts';
import type { PeerLink } from '../link.ts';

/** Contents that one session fetches, and the time for all of them. */
export const CONTENTS_MAX = 16;
const CONTENTS_MS = 60_000;

export type ContentFiles = Pick<Files, 'receive' | 'storeUnpinned'>;

/** The file in which a peer that has the message must have read what it says; undefined: it says that itself, or in a file of IPFS. */
export function contentOf(read: ReadFrame): string | undefined {
  if (!('accepted' in read) || read.accepted.isSkeleton || isRead(read.accepted.message)) return undefined;
  const { itemHash } = read.accepted.message;
  return isItemHash64(itemHash) ? itemHash : undefined;
}

/** @returns whether it is here. Throws what the peer, or this node's store, failed with */
async function fetchContent(
  { openFile }: PeerLink,
  files: ContentFiles,
  hash: string,
  signal: AbortSignal,
): Promise<boolean> {
  const opened = await openFile?.(hash, signal);
  if (opened === undefined || 'restMs' in opened) return false;
  const { stream, contentType, sizeBytes } = opened;
  using _end = addAbortListener(signal, () => stream.destroy());
  const blob = await files.receive(stream, LIMITS.contentFileBytes, sizeBytes).catch((error: unknown) => {
    stream.destroy();
    throw error;
  });
  try {
    if (blob.hash !== hash) return false;
    await files.storeUnpinned(blob, contentType);
    return true;
  } finally {
    await blob.discard();
  }
}

/**
 * Fetches contents from a peer, one after another. What it does not have, or gives wrong, is no failure: others may have it. Nothing keeps what
 * turns out to prove nothing.
 * @param hashes at most CONTENTS_MAX are asked for
 * @returns those that are here now
 */
export async function fetchContents(
  link: PeerLink,
  files: ContentFiles,
  hashes: readonly string[],
  signal: AbortSignal,
): Promise<ReadonlySet<string>> {
  const ended = AbortSignal.any([signal, AbortSignal.timeout(CONTENTS_MS)]);
  const here = new Set<string>();
  for (const hash of hashes.slice(0, CONTENTS_MAX)) {
    if (ended.aborted) break;
    const isHere = await fetchContent(link, files, hash, ended).catch(() => false);
    if (isHere) here.add(hash);
  }
  signal.throwIfAborted();
  return here;
}
