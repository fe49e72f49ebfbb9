import type { Context } from '../context.ts';
import { plainText, renderTime } from '../output/text.ts';
import {
  addressesOf,
  type DateOptions,
  listQueryOf,
  type OrderOptions,
  type PageOptions,
  pageOf,
} from './filters.ts';

export interface MessageListOptions extends DateOptions, OrderOptions, PageOptions {
  readonly address?: string;
  readonly owner?: string;
  readonly type?: string;
  readonly channel?: string;
  readonly status?: string;
  readonly contentType?: string;
  readonly ref?: string;
  readonly tag?: string;
  readonly hash?: string;
  readonly contentHash?: string;
  readonly contentKey?: string;
  readonly chain?: string;
  readonly payment?: string;
  readonly startBlock?: number;
  readonly endBlock?: number;
}

/** Lists messages by everything that the API filters them by; the newest first. */
export async function listMessages({ reader, output }: Context, options: MessageListOptions): Promise<void> {
  const answer = await reader.findMessages({
    ...listQueryOf(options),
    addresses: await addressesOf(options.address),
    owners: await addressesOf(options.owner),
    msgTypes: options.type,
    channels: options.channel,
    msgStatuses: options.status,
    contentTypes: options.contentType,
    refs: options.ref,
    tags: options.tag,
    hashes: options.hash,
    contentHashes: options.contentHash,
    contentKeys: options.contentKey,
    chains: options.chain,
    paymentTypes: options.payment,
    startBlock: options.startBlock,
    endBlock: options.endBlock,
  });
  const rows = answer.messages.map((message) => [
    renderTime(message.time),
    plainText(message.type),
    plainText(message.channel ?? ''),
    plainText(message.sender),
    message.item_hash,
  ]);
  const pagination = pageOf(answer);
  output.result(
    { messages: answer.messages, pagination, next_cursor: answer.next_cursor ?? null },
    output.table(['TIME', 'TYPE', 'CHANNEL', 'SENDER', 'HASH'], rows, 'no messages'),
  );
  output.page(pagination, 'messages');
}
