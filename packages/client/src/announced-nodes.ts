import { nodeIdOf, parseEvmAddress } from '@skerry/protocol';
import type { CoreClient } from './core-client.ts';
import { requestJson } from './request.ts';

/** A compute node as its own newest announcement says. The url is a stranger's word. */
export interface AnnouncedNode {
  readonly nodeId: string;
  readonly address: string;
  readonly url: string;
}

interface PostsPage {
  readonly posts: readonly {
    readonly address: string;
    readonly content: { readonly url?: unknown } | null;
  }[];
  readonly next_cursor: string | null;
}

const POSTS_PER_PAGE = 500;
/** More is no network but an attack. */
const NODES_MAX = 50_000;
const PAGES_MAX = (NODES_MAX / POSTS_PER_PAGE) * 4;

const isEvmAddress = (text: string) => /^0x[0-9a-fA-F]{40}$/.test(text);

/** Compute nodes that announced themselves: each where it said last. */
export async function readAnnouncedNodes(core: CoreClient, signal: AbortSignal): Promise<AnnouncedNode[]> {
  const nodes = new Map<string, AnnouncedNode>();
  let cursor: string | null = '';
  for (let page = 0; page < PAGES_MAX && cursor !== null; page++) {
    const query = new URLSearchParams({ types: 'net-node', pagination: String(POSTS_PER_PAGE), cursor });
    const answer: PostsPage = await requestJson(`${core.url}/api/v0/posts.json?${query}`, { signal });
    for (const { address: sender, content } of answer.posts) {
      if (typeof content?.url !== 'string' || !isEvmAddress(sender)) continue;
      const address = parseEvmAddress(sender);
      const nodeId = nodeIdOf(address);
      if (!nodes.has(nodeId) && nodes.size < NODES_MAX)
        nodes.set(nodeId, { nodeId, address, url: content.url });
    }
    cursor = answer.next_cursor;
  }
  return [...nodes.values()];
}
