import { NETWORK_LISTS_API } from '@skerry/protocol/api/core/deployed/lists';
import type { ProgramRunner } from '@skerry/protocol/api/core/programs';
import {
  AppError,
  NETWORK_CHANNEL,
  NETWORK_POST,
  type NodeContent,
  nodeIdOf,
  parseNodeContent,
} from '@skerry/protocol/forms';
import { callRows } from '../call.ts';
import type { CoreClient } from '../core-client.ts';

const PAGE_SIZE = 100;

/** What a post announces; nothing where it is no announcement. */
function announcedIn(content: unknown): NodeContent[] {
  try {
    return [parseNodeContent(content)];
  } catch {
    return [];
  }
}

/** A compute node as the network knows it. */
export interface ComputeNode {
  /** Where it says that it is. */
  readonly url: string;
  readonly nodeId: string;
}

/** Throws NODE_NOT_FOUND. */
export const findNode = async (core: Pick<CoreClient, 'url'>, nodeAddress: string): Promise<ComputeNode> => ({
  url: await findNodeUrl(core, nodeAddress),
  nodeId: nodeIdOf(nodeAddress),
});

/** Where a compute node is, by its own newest announcement. Throws NODE_NOT_FOUND. */
export async function findNodeUrl(core: Pick<CoreClient, 'url'>, nodeAddress: string): Promise<string> {
  const query = {
    channels: NETWORK_CHANNEL.compute,
    types: NETWORK_POST.node,
    addresses: nodeAddress,
    pagination: PAGE_SIZE,
  };
  const { posts } = await callRows(core.url, NETWORK_LISTS_API.listNetworkPosts, 'posts', { query });
  const announced = posts
    .flatMap(({ content }) => announcedIn(content))
    .sort((one, other) => other.announced_at_ms - one.announced_at_ms);
  const url = announced[0]?.url;
  if (url === undefined)
    throw new AppError('NODE_NOT_FOUND', `the compute node ${nodeAddress} has not announced its URL`);
  return url.replace(/\/+$/, '');
}

export const nodeOfRunner = ({ url, node_id: nodeId }: ProgramRunner): ComputeNode => ({
  url: url.replace(/\/+$/, ''),
  nodeId,
});
