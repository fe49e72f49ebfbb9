import { AGGREGATES_API, OwnedAggregatesView } from '@skerry/protocol/api/core/aggregates';
import type { SentQuery } from '@skerry/protocol/api/operation';
import { AppError, fieldsOf } from '@skerry/protocol/forms';
import type { Static } from '@skerry/protocol/type';
import { type CallOptions, call, callRaw, createAnswerParser, parseJson } from '../call.ts';
import { readText } from './read-body.ts';

const parseOwned = createAnswerParser(OwnedAggregatesView, 'the answer');

export interface AggregateOptions extends CallOptions {
  /** What the answer may have: an owner makes an aggregate as large as they like. What any answer may have by default. */
  readonly bytesMax?: number;
}

async function readOwned(
  coreUrl: string,
  owner: string,
  query: SentQuery<typeof AGGREGATES_API.listOwnedAggregates>,
  { bytesMax, ...options }: AggregateOptions,
): Promise<Static<typeof OwnedAggregatesView> | undefined> {
  const { listOwnedAggregates: operation } = AGGREGATES_API;
  const input = { params: { address: owner }, query };
  try {
    if (bytesMax === undefined) return parseOwned(await call(coreUrl, operation, input, options));
    const answer = await callRaw(coreUrl, operation, input, options);
    return parseOwned(parseJson(await readText(answer, bytesMax), `GET ${answer.url}`));
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
  options: AggregateOptions = {},
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
