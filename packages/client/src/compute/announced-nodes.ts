import { NETWORK_LISTS_API } from '@skerry/protocol/api/core/deployed/lists';
import { fieldsOf, NETWORK_POST, nodeIdOf, parseEvmAddress } from '@skerry/protocol/forms';
import { callRows } from '../call.ts';
import type { CoreClient } from '../core-client.ts';
import { readPages } from '../pages.ts';

/** A compute node as its own newest announcement says. The url is a stranger's word. */
export interface AnnouncedNode {
  readonly nodeId: string;
  readonly address: string;
  readonly url: string;
}

const POSTS_PER_PAGE = 500;
/** More is no network but an attack. */
const NODES_MAX = 50_000;
const PAGES_MAX = (NODES_MAX / POSTS_PER_PAGE) * 4;

const isEvmAddress = (text: string) => /^0x[0-9a-fA-F]{40}$/.test(text);

/** Compute nodes that announced themselves: each where it said last. */
export async function readAnnouncedNodes(core: CoreClient, signal: AbortSignal): Promise<AnnouncedNode[]> {
  const nodes = new Map<string, AnnouncedNode>();
  const filter = { types: NETWORK_POST.node, pagination: POSTS_PER_PAGE };
  let pages = 0;
  const read = (place: object) =>
    callRows(
      core.url,
      NETWORK_LISTS_API.listNetworkPosts,
      'posts',
      { query: { ...filter, ...place } },
      { signal },
    );
  for await (const { posts } of readPages(read)) {
    for (const { address: sender, content } of posts) {
      const { url } = fieldsOf(content);
      if (typeof url !== 'string' || !isEvmAddress(sender)) continue;
      const address = parseEvmAddress(sender);
      const nodeId = nodeIdOf(address);
      if (!nodes.has(nodeId) && nodes.size < NODES_MAX) nodes.set(nodeId, { nodeId, address, url });
    }
    if (++pages >= PAGES_MAX) break;
  }
  return [...nodes.values()];
}
