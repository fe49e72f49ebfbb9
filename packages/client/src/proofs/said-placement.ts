import {
  type AllocationContent,
  AppError,
  convertNetworkContent,
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
  /** When a core node first had it, Unix milliseconds; undefined of an envelope that came in time. */
  readonly notedMs?: number | null | undefined;
  readonly content: AllocationContent;
}

/** What a core node gives that its sender did not sign so, or that cannot be read, counts for nothing. */
const NOT_SIGNED: ReadonlySet<string> = new Set(['invalid', 'unauthorized', 'missing']);

/**
 * A listed message as its sender signed it; undefined where it places nothing, and where nothing tells since when it is there: whoever has a
 * key dates as they like.
 *
 * @param coreUrl that listed it
 * @param row as `bodies=shared` has it
 */
export async function readSaidAllocation(
  coreUrl: string,
  row: ListedMessage,
): Promise<SaidAllocation | undefined> {
  if (typeof row.shared !== 'string') return undefined;
  try {
    const { form, type, itemHash, sender, time, notedMs, content } = await verifyListed({ coreUrl }, row);
    const post = parsePostContent(
      form === 'network' ? convertNetworkContent(type, itemHash, content).content : content,
    );
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
