import {
  AppError,
  announcedAtMs,
  fieldsOf,
  type MessageView,
  NETWORK_CHANNEL,
  NETWORK_POST,
  nodeIdOf,
  parseEvmAddress,
  parseIpv6Prefix,
  parseNodeContent,
  parseNodeUrl,
  parsePostContent,
} from '@skerry/protocol';
import type { NetworkMessageView } from '@skerry/protocol/api/core/messages';
import type { Node } from './view.ts';

/** What of a message says where a node is. */
export type Said = Pick<MessageView, 'item_hash' | 'sender' | 'channel' | 'timestamp' | 'content'>;

/** The same of a message as lists in the network form have it, whose contents begin with address and time. */
export function saidOfRow({ item_hash, sender, channel = null, time, content }: NetworkMessageView): Said {
  const { type, content: inner } = fieldsOf(content);
  return { item_hash, sender, channel, timestamp: Math.floor(time), content: { type, content: inner } };
}

/**
 * A node from its `net-node` message. Its id follows from who signed, never from what is said.
 *
 * @throws AppError (INVALID_CONTENT, UNKNOWN_FIELD, INVALID_ADDRESS) where the message announces no node
 */
export function parseAnnouncement(message: Said): Node {
  const post = parsePostContent(message.content);
  if (message.channel !== NETWORK_CHANNEL.compute || post.type !== NETWORK_POST.node)
    throw new AppError(
      'INVALID_CONTENT',
      `the message is not a ${NETWORK_POST.node} in channel ${NETWORK_CHANNEL.compute}`,
    );
  const content = parseNodeContent(post.content);
  const address = parseEvmAddress(message.sender);
  const { cpu, memory_mib: memoryMib, disk_gib: diskGib } = content.capacity;
  return {
    nodeId: nodeIdOf(address),
    address,
    url: parseNodeUrl(content.url),
    // A node that can hold nothing may have no prefix either, and still says why.
    ipv6Prefix: content.reason && content.ipv6_prefix === '' ? null : parseIpv6Prefix(content.ipv6_prefix),
    capacity: { cpu, memoryMib, diskGib },
    features: content.features,
    version: content.version,
    reason: content.reason,
    announcedAtMs: announcedAtMs(content, message.timestamp),
    itemHash: message.item_hash,
  };
}
