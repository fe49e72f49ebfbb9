import { NETWORK_LISTS_API } from '@skerry/protocol/api/core/deployed/lists';
import type { NetworkPostView } from '@skerry/protocol/api/core/messages';
import {
  announcedAtMs,
  LIMITS,
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

/**
 * The rule for all who ask where a node is: of what is in the form of an announcement, the one with the latest date counts.
 * @returns whether there was a place for all
 */
function note(nodes: Map<string, Announcement>, posts: readonly Post[]): boolean {
  let hasRoom = true;
  for (const post of posts) {
    const one = announcementOf(post);
    if (!one) continue;
    const known = nodes.get(one.nodeId);
    if (known ? known.atMs < one.atMs : nodes.size < NODES_MAX) nodes.set(one.nodeId, one);
    else hasRoom &&= known !== undefined;
  }
  return hasRoom;
}

/** Compute nodes that announced themselves: each where it said last. */
export interface AnnouncedNodes {
  readonly nodes: readonly AnnouncedNode[];
  /**
   * Whether these are all. One key can announce itself as often as it likes: where the newest announcements are too many to be read, a node
   * that said long ago where it is may be missing, and is not gone.
   */
  readonly isWhole: boolean;
}

/** What was read of all announcements, and up to which of them. */
interface Reading {
  readonly found: Map<string, Announcement>;
  isWhole: boolean;
  /** The greatest time of a message, Unix seconds. */
  newest: number;
}

/** @param since only messages of this time or later, Unix seconds */
async function readInto(
  reading: Reading,
  core: CoreClient,
  signal: AbortSignal,
  since?: number,
): Promise<void> {
  const filter = {
    ...{ ...ANNOUNCEMENTS, pagination: POSTS_PER_PAGE },
    ...(since === undefined ? {} : { startDate: since }),
  };
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
    if (pages++ === PAGES_MAX) {
      reading.isWhole = false;
      return;
    }
    if (!note(reading.found, posts)) reading.isWhole = false;
    reading.newest = Math.max(reading.newest, ...posts.map(({ time = 0 }) => time));
  }
}

async function readAll(core: CoreClient, signal: AbortSignal): Promise<Reading> {
  const reading: Reading = { found: new Map(), isWhole: true, newest: 0 };
  await readInto(reading, core, signal);
  return reading;
}

const nodesOf = ({ found, isWhole }: Reading): AnnouncedNodes => ({
  nodes: Array.from(found.values(), ({ nodeId, address, url }) => ({ nodeId, address, url })),
  isWhole,
});

/** Compute nodes that announced themselves, by the newest 200,000 announcements. */
export const readAnnouncements = async (core: CoreClient, signal: AbortSignal): Promise<AnnouncedNodes> =>
  nodesOf(await readAll(core, signal));

/** What was taken back, or came later than that with an older date, is seen with the next read of all. */
const ALL_EVERY_MS = 600_000;
/** Messages come in another order than they are dated: by as much as a date may be ahead and a message late, with room for a slow clock. */
const OVERLAP_SECONDS = 2 * (LIMITS.futureSeconds + LIMITS.lateSeconds);

/**
 * The same for whoever asks again and again: between two reads of all announcements, of which a network has hundreds of pages, only the
 * newest are read.
 */
export class AnnouncementReader {
  readonly #core: CoreClient;
  readonly #uptime: () => number;
  #reading: Reading | undefined;
  #allMs = 0;

  /** @param uptime milliseconds of a clock that nobody sets */
  constructor(core: CoreClient, uptime: () => number = () => performance.now()) {
    this.#core = core;
    this.#uptime = uptime;
  }

  async read(signal: AbortSignal): Promise<AnnouncedNodes> {
    const nowMs = this.#uptime();
    if (this.#reading && nowMs - this.#allMs < ALL_EVERY_MS) {
      const since = Math.max(0, Math.floor(this.#reading.newest) - OVERLAP_SECONDS);
      await readInto(this.#reading, this.#core, signal, since);
    } else {
      this.#reading = await readAll(this.#core, signal);
      this.#allMs = nowMs;
    }
    return nodesOf(this.#reading);
  }
}

/** The same, for those who remember none of them. */
export const readAnnouncedNodes = async (
  core: CoreClient,
  signal: AbortSignal,
): Promise<readonly AnnouncedNode[]> => (await readAnnouncements(core, signal)).nodes;

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
