import { NETWORK_LISTS_API } from '@skerry/protocol/api/core/deployed/lists';
import type { NetworkPostView } from '@skerry/protocol/api/core/messages';
import {
  announcedAtMs,
  NETWORK_CHANNEL,
  NETWORK_POST,
  nodeIdOf,
  parseEvmAddress,
  parseNodeContent,
} from '@skerry/protocol/forms';
import { type CallOptions, callRows } from '../call.ts';
import type { CoreClient } from '../core-client.ts';
import { readPages } from '../pages.ts';

/** A compute node as its own newest announcement says. The url is a stranger's word. */
export interface AnnouncedNode {
  readonly nodeId: string;
  readonly address: string;
  /** Without slashes at its end. */
  readonly url: string;
}

/** What a compute node announced last. */
export interface Announcement extends AnnouncedNode {
  /** Milliseconds since 1970; the one with the latest date counts. */
  readonly atMs: number;
}

const ANNOUNCEMENTS = { channels: NETWORK_CHANNEL.compute, types: NETWORK_POST.node } as const;
const POSTS_PER_PAGE = 500;
/** More is no network but an attack. */
const NODES_MAX = 50_000;
const PAGES_MAX = (NODES_MAX / POSTS_PER_PAGE) * 4;
/** Of one node: the newest. */
const OWN_POSTS = 100;

type Post = Pick<NetworkPostView, 'address' | 'content' | 'time'>;

/** What a post announces of the node that signed it; undefined where it is no announcement. */
function announcementOf({ address: sender, content, time }: Post): Announcement | undefined {
  try {
    const said = parseNodeContent(content);
    const address = parseEvmAddress(sender);
    const url = said.url.replace(/\/+$/, '');
    return { nodeId: nodeIdOf(address), address, url, atMs: announcedAtMs(said, time) };
  } catch {
    return undefined;
  }
}

/** The rule for all who ask where a node is: of what is in the form of an announcement, the one with the latest date counts. */
function note(nodes: Map<string, Announcement>, posts: readonly Post[]): void {
  for (const post of posts) {
    const one = announcementOf(post);
    if (!one) continue;
    const known = nodes.get(one.nodeId);
    if (known ? known.atMs < one.atMs : nodes.size < NODES_MAX) nodes.set(one.nodeId, one);
  }
}

/** Compute nodes that announced themselves: each where it said last. */
export async function readAnnouncedNodes(core: CoreClient, signal: AbortSignal): Promise<AnnouncedNode[]> {
  const nodes = new Map<string, Announcement>();
  const filter = { ...ANNOUNCEMENTS, pagination: POSTS_PER_PAGE };
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
    note(nodes, posts);
    if (++pages >= PAGES_MAX) break;
  }
  return [...nodes.values()].map(({ nodeId, address, url }) => ({ nodeId, address, url }));
}

/** What a compute node says of itself; undefined where it has not announced itself. */
export async function findAnnouncement(
  core: Pick<CoreClient, 'url'>,
  nodeAddress: string,
  options: CallOptions = {},
): Promise<Announcement | undefined> {
  const nodes = new Map<string, Announcement>();
  const query = { ...ANNOUNCEMENTS, addresses: nodeAddress, pagination: OWN_POSTS };
  const { posts } = await callRows(core.url, NETWORK_LISTS_API.listNetworkPosts, 'posts', { query }, options);
  note(nodes, posts);
  return nodes.get(nodeIdOf(nodeAddress));
}
