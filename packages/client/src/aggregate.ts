import { AGGREGATES_API, OwnedAggregatesView } from '@skerry/protocol/api/core/aggregates';
import { AppError } from '@skerry/protocol/forms';
import { type CallOptions, call, createAnswerParser } from './call.ts';

const parseOwned = createAnswerParser(OwnedAggregatesView, 'the answer');

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
  const input = { params: { address: owner }, query: { keys: key } };
  try {
    return parseOwned(await call(coreUrl, AGGREGATES_API.listOwnedAggregates, input, options)).data[key];
  } catch (error) {
    if (error instanceof AppError && error.code === 'AGGREGATE_NOT_FOUND') return undefined;
    throw error;
  }
}
