import { AppError } from '../errors.ts';
import { type NetworkAggregateContent, parseNetworkAggregateContent } from './content/aggregate.ts';
import { type NetworkForgetContent, parseNetworkForgetContent } from './content/forget.ts';
import { type NetworkInstanceContent, parseNetworkInstanceContent } from './content/instance.ts';
import { type NetworkPostContent, parseNetworkPostContent } from './content/post.ts';
import { type NetworkProgramContent, parseNetworkProgramContent } from './content/program.ts';
import { type NetworkStoreContent, parseNetworkStoreContent } from './content/store.ts';

/** The message types that have a content in the network form. */
export interface NetworkContents {
  readonly POST: NetworkPostContent;
  readonly AGGREGATE: NetworkAggregateContent;
  readonly STORE: NetworkStoreContent;
  readonly FORGET: NetworkForgetContent;
  readonly PROGRAM: NetworkProgramContent;
  readonly INSTANCE: NetworkInstanceContent;
}
export type NetworkType = keyof NetworkContents;

export const NETWORK_PARSERS: { readonly [T in NetworkType]: (value: unknown) => NetworkContents[T] } = {
  POST: parseNetworkPostContent,
  AGGREGATE: parseNetworkAggregateContent,
  STORE: parseNetworkStoreContent,
  FORGET: parseNetworkForgetContent,
  PROGRAM: parseNetworkProgramContent,
  INSTANCE: parseNetworkInstanceContent,
};

/** Throws UNKNOWN_MESSAGE_TYPE. */
export function parseNetworkType(text: string): NetworkType {
  if (Object.hasOwn(NETWORK_PARSERS, text)) return text as NetworkType;
  throw new AppError(
    'UNKNOWN_MESSAGE_TYPE',
    `a message of this form has one of the types ${Object.keys(NETWORK_PARSERS).join(', ')}`,
  );
}
