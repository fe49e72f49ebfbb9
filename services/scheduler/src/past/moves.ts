import { type CoreClient, callRows, readPages } from '@skerry/client';
import {
  type AllocationContent,
  AppError,
  fieldsOf,
  NETWORK_POST,
  NODE_DRAINING,
  parseAllocationContent,
} from '@skerry/protocol';
import { NETWORK_LISTS_API } from '@skerry/protocol/api/core/deployed/lists';
import { FORGOTTEN_MS } from '../planning/departures.ts';
import { NODE_GONE } from '../planning/planner.ts';
import { NODE_DEAD } from '../planning/standing.ts';
import type { Move } from './departures.ts';

const POSTS_PER_PAGE = 500;
/** What is further back is not looked at, also where it is not known then where an instance was. */
const PAGES_MAX = 40;

/** Why an instance leaves a node that did not lose it by a decision of the operator's. */
const LEFT: ReadonlySet<string> = new Set([NODE_DEAD, NODE_DRAINING, NODE_GONE.code]);

/**
 * A placement as it was told, dated no later than its message was signed: core nodes take none that is ahead by much, while decisions go on
 * being dated ahead after a clock was, each later than the one before it. Undefined where it is none.
 *
 * @param time of the message, Unix seconds, whose fraction may be missing
 */
export function readAllocation(content: unknown, time: number | undefined): AllocationContent | undefined {
  try {
    const one = parseAllocationContent(content);
    const lastMs = time === undefined ? Number.POSITIVE_INFINITY : Math.floor(time) * 1_000 + 999;
    return { ...one, decided_at_ms: Math.min(one.decided_at_ms, lastMs) };
  } catch (error) {
    if (error instanceof AppError) return undefined;
    throw error;
  }
}

/**
 * What placements tell of nodes that lost instances. Pure.
 *
 * @param told in any order; of several with one date the earlier first
 * @param counts whether a node that left by itself is held back for it
 */
export function movesOf(
  told: readonly AllocationContent[],
  counts: (nodeAddress: string) => boolean,
): Move[] {
  const held = new Map<string, { readonly nodeId: string | null; readonly address: string | null }>();
  return told
    .toSorted((a, b) => a.decided_at_ms - b.decided_at_ms)
    .map(({ instance_id: id, node_id: to, node_address: address, reason, decided_at_ms: atMs }) => {
      const before = held.get(id);
      held.set(id, { nodeId: to, address });
      const code = reason?.code ?? '';
      const isSilent = code === NODE_DEAD;
      const isLeft = before?.nodeId && before.nodeId !== to && LEFT.has(code);
      const isCounted = isLeft && (isSilent || counts(before.address!));
      return { atMs, to, from: isCounted ? before.nodeId : null, isSilent };
    });
}

/**
 * The placements of the time in which a departure counts, and of those before it what fits on a few pages, by all schedulers that the core
 * node heeds: what this one did not see, since it was not there or is a new one, they tell.
 *
 * @param nowMs Unix milliseconds
 */
export async function readTold(
  core: CoreClient,
  nowMs: number,
  signal: AbortSignal,
): Promise<AllocationContent[]> {
  const { trust } = await core.getInfo();
  const addresses = trust.schedulers.value.join(',');
  if (addresses === '') return [];
  const list = NETWORK_LISTS_API.listNetworkPosts;
  const filter = { types: NETWORK_POST.allocation, addresses, pagination: POSTS_PER_PAGE };
  const found: AllocationContent[] = [];
  /** Instances that moved, and of which it is not known yet from where. */
  const sought = new Set<string>();
  const read = (place: object) =>
    callRows(core.url, list, 'posts', { query: { ...filter, ...place } }, { signal });
  let pages = 0;
  for await (const { posts } of readPages(read)) {
    for (const { content, time } of posts) {
      const one = readAllocation(content, time);
      if (!one) continue;
      found.push(one);
      sought.delete(one.instance_id);
      if (one.decided_at_ms > nowMs - FORGOTTEN_MS && LEFT.has(String(fieldsOf(one.reason).code)))
        sought.add(one.instance_id);
    }
    // By the time of the message: a placement that another key signed again has the date of the first.
    const oldestMs = (posts.at(-1)?.time ?? 0) * 1_000;
    if (oldestMs < nowMs - FORGOTTEN_MS && sought.size === 0) break;
    if (++pages === PAGES_MAX) break;
  }
  // The newest came first: of several that are dated alike the later one is to stay behind the others.
  return found.reverse();
}
