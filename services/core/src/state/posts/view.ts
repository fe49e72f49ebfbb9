import type { PostView } from '@skerry/protocol/api/core/deployed/lists';
import type { Confirmations } from '../messages/confirmations.ts';
import { isoOf, networkViewOf } from '../messages/view.ts';
import type { PostWithMessages } from './posts.ts';

/** The owner of a post as the post spells it. */
const addressOf = ({ original }: PostWithMessages): string => {
  const { content } = networkViewOf(original);
  return (content as { address?: string } | null)?.address ?? original.owner;
};

/** A post in the form of deployed nodes: the content of its latest amend, the rest of the original. */
export function postViewOf(post: PostWithMessages, confirmations: Confirmations) {
  const { original, latest } = post;
  const address = addressOf(post);
  const message = networkViewOf(latest, confirmations);
  const content = message.content as { content?: unknown; type?: string } | null;
  return {
    chain: message.chain,
    item_hash: message.item_hash,
    sender: address,
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
    address,
    ref: original.subject,
  };
}

/** The same as later deployed clients read it: the content and its dates alone. */
export function briefPostViewOf(post: PostWithMessages): PostView {
  const { original, latest, updated } = post;
  const content = networkViewOf(latest).content as { content?: unknown } | null;
  return {
    item_hash: latest.item_hash,
    content: content?.content ?? {},
    original_item_hash: original.item_hash,
    original_type: original.content_type,
    address: addressOf(post),
    ref: original.subject,
    channel: original.channel,
    created: isoOf(original.time),
    last_updated: isoOf(updated),
  };
}
