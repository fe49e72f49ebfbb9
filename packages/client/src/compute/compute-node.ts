import type { ProgramRunner } from '@skerry/protocol/api/core/programs';
import { AppError, nodeIdOf } from '@skerry/protocol/forms';
import type { CoreClient } from '../core-client.ts';
import { findAnnouncement } from './announced-nodes.ts';

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
  const said = await findAnnouncement(core, nodeAddress);
  if (!said)
    throw new AppError('NODE_NOT_FOUND', `the compute node ${nodeAddress} has not announced its URL`);
  return said.url;
}

export const nodeOfRunner = ({ url, node_id: nodeId }: ProgramRunner): ComputeNode => ({
  url: url.replace(/\/+$/, ''),
  nodeId,
});
