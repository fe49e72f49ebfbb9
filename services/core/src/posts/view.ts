import { networkViewOf } from '../messages/view.ts';
import type { PostWithMessages } from './read.ts';

/** A post in the form of deployed nodes: the content of its latest amend, the rest of the original. */
export function postViewOf({ post, original, latest }: PostWithMessages) {
  const message = networkViewOf(latest);
  const content = message.content as { content?: unknown; type?: string } | null;
  return {
    chain: message.chain,
    item_hash: message.item_hash,
    sender: post.owner,
    type: latest.content_type,
    channel: original.channel,
    confirmed: message.confirmed,
    content: content?.content ?? {},
    item_content: message.item_content,
    item_type: message.item_type,
    signature: message.signature,
    size: message.size,
    time: message.time,
    confirmations: message.confirmations,
    original_item_hash: post.item_hash,
    original_signature: original.signature,
    original_type: post.type,
    hash: post.item_hash,
    address: post.owner,
    ref: post.ref,
  };
}
