import {
  type AllocationContent,
  AppError,
  NETWORK_POST,
  parseAllocationContent,
  parsePostContent,
} from '@skerry/protocol';
import { type ListedMessage, verifyListed } from '../signed-message.ts';

/** A signed placement, as its message has it. */
export interface SaidAllocation {
  readonly itemHash: string;
  readonly sender: string;
  /** Its sender's word, Unix seconds. */
  readonly time: number;
  /** When a core node first had it, Unix milliseconds, where that was late. */
  readonly notedMs?: number | null | undefined;
  readonly content: AllocationContent;
}

/** What a core node gives that its sender did not sign so, or that cannot be read, counts for nothing. */
const NOT_SIGNED: ReadonlySet<string> = new Set(['invalid', 'unauthorized', 'missing']);

/** A listed message as its sender signed it; undefined where it places nothing. @param coreUrl that listed it */
export async function readSaidAllocation(
  coreUrl: string,
  row: ListedMessage,
): Promise<SaidAllocation | undefined> {
  try {
    const { itemHash, sender, time, notedMs, content } = await verifyListed({ coreUrl }, row);
    const post = parsePostContent(content);
    if (post.type !== NETWORK_POST.allocation) return undefined;
    return { itemHash, sender, time, notedMs, content: parseAllocationContent(post.content) };
  } catch (error) {
    if (error instanceof AppError && NOT_SIGNED.has(error.kind)) return undefined;
    throw error;
  }
}

/** The order in which core nodes let placements of an instance count: the latest does. */
export const isLaterSaid = (a: SaidAllocation, b: SaidAllocation): boolean =>
  a.content.decided_at_ms !== b.content.decided_at_ms
    ? a.content.decided_at_ms > b.content.decided_at_ms
    : a.itemHash > b.itemHash;
