import { NETWORK_LISTS_API } from '@skerry/protocol/api/core/deployed/lists';
import { AMEND, fieldsOf } from '@skerry/protocol/forms';
import { type CallOptions, call } from '../call.ts';
import type { MessageDraft } from '../message.ts';
import { readAggregateTime } from './aggregate.ts';

async function readPostTime(
  coreUrl: string,
  hash: string,
  options: CallOptions,
): Promise<number | undefined> {
  const query = { hashes: hash, pagination: 1 };
  const { posts } = await call(coreUrl, NETWORK_LISTS_API.listNetworkPosts, { query }, options);
  return posts[0]?.time;
}

/**
 * When that which a message changes was last changed, Unix seconds with fraction: the aggregate that it adds to, the post that it
 * amends. Undefined for a message that changes nothing, and where nothing is there to be changed.
 * @param sender whose it is where the content names nobody
 */
export async function readLastChange(
  coreUrl: string,
  { type, content }: Pick<MessageDraft, 'type' | 'content'>,
  sender: string,
  options: CallOptions = {},
): Promise<number | undefined> {
  const { key, address, type: kind, ref } = fieldsOf(content);
  if (type === 'AGGREGATE' && typeof key === 'string')
    return readAggregateTime(coreUrl, typeof address === 'string' ? address : sender, key, options);
  if (type === 'POST' && kind === AMEND && typeof ref === 'string')
    return readPostTime(coreUrl, ref, options);
  return undefined;
}
