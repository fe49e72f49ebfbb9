import { AGGREGATES_API, OwnedAggregatesView } from '@skerry/protocol/api/core/aggregates';
import type { SentQuery } from '@skerry/protocol/api/operation';
import { AppError, fieldsOf } from '@skerry/protocol/forms';
import type { Static } from '@skerry/protocol/type';
import { type CallOptions, call, createAnswerParser } from '../call.ts';

const parseOwned = createAnswerParser(OwnedAggregatesView, 'the answer');

async function readOwned(
  coreUrl: string,
  owner: string,
  query: SentQuery<typeof AGGREGATES_API.listOwnedAggregates>,
  options: CallOptions,
): Promise<Static<typeof OwnedAggregatesView> | undefined> {
  const input = { params: { address: owner }, query };
  try {
    return parseOwned(await call(coreUrl, AGGREGATES_API.listOwnedAggregates, input, options));
  } catch (error) {
    if (error instanceof AppError && error.code === 'AGGREGATE_NOT_FOUND') return undefined;
    throw error;
  }
}

/**
 * What an owner's aggregate has under a key, as every node of the network answers it; undefined where there is none. It is the
 * owner's word, of any form.
 */
export async function readAggregate(
  coreUrl: string,
  owner: string,
  key: string,
  options: CallOptions = {},
): Promise<unknown> {
  return (await readOwned(coreUrl, owner, { keys: key }, options))?.data[key];
}

/** When an owner's aggregate was last changed, Unix seconds with fraction; undefined where there is none, or a node does not say. */
export async function readAggregateTime(
  coreUrl: string,
  owner: string,
  key: string,
  options: CallOptions = {},
): Promise<number | undefined> {
  const info = (await readOwned(coreUrl, owner, { keys: key, with_info: true }, options))?.info?.[key];
  const { last_updated: last } = fieldsOf(info);
  const ms = typeof last === 'string' ? Date.parse(last) : Number.NaN;
  return Number.isNaN(ms) ? undefined : ms / 1000;
}
