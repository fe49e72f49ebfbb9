import type { Confirmations } from '../messages/confirmations.ts';
import { networkViewOf } from '../messages/view.ts';
import type { PostWithMessages } from './posts.ts';

/** A post in the form of deployed nodes: the content of its latest amend, the rest of the original. */
export function postViewOf({ original, latest }: PostWithMessages, confirmations: Confirmations) {
  const message = networkViewOf(latest, confirmations);
  const content = message.content as { content?: unknown; type?: string } | null;
  return {
    chain: message.chain,
    item_hash: message.item_hash,
    sender: original.owner,
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
    original_item_hash: original.item_hash,
    original_signature: original.signature,
    original_type: original.content_type,
    hash: original.item_hash,
    address: original.owner,
    ref: original.subject,
  };
}
