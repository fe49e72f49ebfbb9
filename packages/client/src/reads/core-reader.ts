import type { MessageStatusView, NetworkEvent } from '@skerry/protocol';
import { AGGREGATES_API } from '@skerry/protocol/api/core/aggregates';
import { CREDITS_API } from '@skerry/protocol/api/core/credits';
import { NETWORK_LISTS_API } from '@skerry/protocol/api/core/deployed/lists';
import {
  INDEXER_API,
  type IndexRequestView,
  type NetworkStatusView,
  type NetworkView,
} from '@skerry/protocol/api/core/indexer';
import { type JudgedMessageView, MESSAGES_API } from '@skerry/protocol/api/core/messages';
import { type InfoView, NODE_API } from '@skerry/protocol/api/core/node';
import type { AnswerOf, Operation, SentQuery } from '@skerry/protocol/api/operation';
import { type CallInput, type CallOptions, call } from '../call.ts';
import { type WatchOptions, watchEvents } from '../events.ts';
import { checkAsked } from './asked.ts';
import { ReadPlace } from './read-place.ts';

export interface CoreReaderOptions {
  /** Where the core node is, without `/api/v0`. */
  readonly url: string;
  /** Ends every request of this client. */
  readonly signal?: AbortSignal | undefined;
}

/** What a core node tells whoever asks (docs/openapi.json): messages and what follows from them. Every failure is an AppError with the node's code. */
export class CoreReader {
  readonly url: string;
  readonly #place = new ReadPlace();
  readonly #signal: AbortSignal | undefined;

  constructor({ url, signal }: CoreReaderOptions) {
    this.url = url.replace(/\/+$/, '');
    this.#signal = signal;
  }

  /** What every request of this client is made with. */
  get options(): Pick<CallOptions, 'signal' | 'place'> {
    return { signal: this.#signal, place: this.#place };
  }

  protected ask<O extends Operation>(operation: O, input: CallInput<O>): Promise<AnswerOf<O>> {
    return call(this.url, operation, input, this.options);
  }

  /** Whether the node answers, and what it says of itself. */
  getInfo(): Promise<InfoView> {
    return this.ask(NODE_API.getInfo, {});
  }

  async getMessage(hash: string): Promise<JudgedMessageView> {
    return checkAsked(hash, 'item_hash', await this.ask(MESSAGES_API.getMessage, { params: { hash } }));
  }

  /** What became of a message, and why. */
  getMessageStatus(hash: string): Promise<MessageStatusView> {
    return this.ask(MESSAGES_API.getMessageStatus, { params: { hash } });
  }

  /** One page of the messages in force, newest first. */
  listMessages(
    query: SentQuery<typeof MESSAGES_API.listMessages> = {},
  ): Promise<AnswerOf<typeof MESSAGES_API.listMessages>> {
    return this.ask(MESSAGES_API.listMessages, { query });
  }

  /** One page of messages by every filter there is, also those that are not in force, in the network form. Dates are Unix seconds. */
  findMessages(
    query: SentQuery<typeof NETWORK_LISTS_API.listNetworkMessages> = {},
  ): Promise<AnswerOf<typeof NETWORK_LISTS_API.listNetworkMessages>> {
    return this.ask(NETWORK_LISTS_API.listNetworkMessages, { query });
  }

  /** One page of posts, each with the content of its latest amend; last changed first. Dates are Unix seconds. */
  listPosts(
    query: SentQuery<typeof NETWORK_LISTS_API.listNetworkPosts> = {},
  ): Promise<AnswerOf<typeof NETWORK_LISTS_API.listNetworkPosts>> {
    return this.ask(NETWORK_LISTS_API.listNetworkPosts, { query });
  }

  /** The newest STORE message of an owner that is a later version of a file, by its first one; undefined where none is. */
  async findNewestVersion(ref: string, owner: string): Promise<string | undefined> {
    const query = { msgType: 'STORE', refs: ref, owners: owner, sortOrder: -1, pagination: 1 } as const;
    const { messages } = await this.findMessages(query);
    return messages[0]?.item_hash;
  }

  /** An owner's aggregate by its key. Throws AGGREGATE_NOT_FOUND. */
  getAggregate(address: string, key: string): Promise<AnswerOf<typeof AGGREGATES_API.getAggregate>> {
    return this.ask(AGGREGATES_API.getAggregate, { params: { address, key } });
  }

  /** One page of aggregates, last changed first. */
  listAggregates(
    query: SentQuery<typeof AGGREGATES_API.listAggregates> = {},
  ): Promise<AnswerOf<typeof AGGREGATES_API.listAggregates>> {
    return this.ask(AGGREGATES_API.listAggregates, { query });
  }

  /** The credit of an address, now or at a time in Unix seconds. */
  getBalance(
    address: string,
    query: SentQuery<typeof CREDITS_API.getBalance> = {},
  ): Promise<AnswerOf<typeof CREDITS_API.getBalance>> {
    return this.ask(CREDITS_API.getBalance, { params: { address }, query });
  }

  /** One page of what an address bought and used, newest first. */
  listCreditHistory(
    address: string,
    query: SentQuery<typeof CREDITS_API.listCreditHistory> = {},
  ): Promise<AnswerOf<typeof CREDITS_API.listCreditHistory>> {
    return this.ask(CREDITS_API.listCreditHistory, { params: { address }, query });
  }

  /** How far chains are indexed. */
  async listNetworks(): Promise<NetworkView[]> {
    return (await this.ask(INDEXER_API.listNetworks, {})).networks;
  }

  /** How far one chain is indexed, with its contracts and endpoints. */
  getNetwork(network: string): Promise<NetworkStatusView> {
    return this.ask(INDEXER_API.getNetwork, { params: { network } });
  }

  /** What became of an address's requests to index contracts, newest first. */
  async listIndexRequests(address: string): Promise<IndexRequestView[]> {
    return (await this.ask(INDEXER_API.listIndexRequests, { params: { address } })).requests;
  }

  /** Changes from a cursor on, then live (see watchEvents), until the reader breaks off or `signal` says so; the client's own does not. */
  async *events(options: Partial<WatchOptions> = {}): AsyncGenerator<NetworkEvent> {
    const { signal = new AbortController().signal } = options;
    for await (const event of watchEvents(this.url, { ...options, signal })) {
      this.#place.noteEvent(event.cursor);
      yield event;
    }
  }
}
