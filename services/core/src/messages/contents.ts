import {
  type AggregateContent,
  AppError,
  convertNetworkContent,
  type ForgetContent,
  type InstanceContent,
  type InstanceControlContent,
  type InstanceUpdateContent,
  type IpfsPinContent,
  type PostContent,
  type Program,
  parseAggregateContent,
  parseForgetContent,
  parseInstanceContent,
  parseInstanceControlContent,
  parseInstanceUpdateContent,
  parseIpfsPinContent,
  parsePostContent,
  parseProgramContent,
  parseStoreContent,
  programOf,
  type StoreContent,
  type VerifiedMessage,
} from '@skerry/protocol';

/** What a message of each type says, whichever form it was signed in. */
export interface Contents {
  readonly POST: PostContent;
  readonly STORE: StoreContent;
  readonly AGGREGATE: AggregateContent;
  readonly FORGET: ForgetContent;
  readonly PROGRAM: Program;
  readonly INSTANCE: InstanceContent;
  readonly INSTANCE_UPDATE: InstanceUpdateContent;
  readonly INSTANCE_CONTROL: InstanceControlContent;
  readonly IPFS_PIN: IpfsPinContent;
}

export type MessageType = keyof Contents;

/** Readers of the envelope form's contents. WEBHOOK is private and goes another way (webhooks/). */
const READERS: { readonly [T in MessageType]: (content: unknown) => Contents[T] } = {
  POST: parsePostContent,
  STORE: parseStoreContent,
  AGGREGATE: parseAggregateContent,
  FORGET: parseForgetContent,
  PROGRAM: (content) => programOf(parseProgramContent(content)),
  INSTANCE: parseInstanceContent,
  INSTANCE_UPDATE: parseInstanceUpdateContent,
  INSTANCE_CONTROL: parseInstanceControlContent,
  IPFS_PIN: parseIpfsPinContent,
};

export const MESSAGE_TYPES = Object.keys(READERS) as MessageType[];

/** Throws UNKNOWN_MESSAGE_TYPE and what the content's reader throws. */
export function readContent(message: VerifiedMessage): { type: MessageType; content: Contents[MessageType] } {
  const { form, type, itemHash, content } = message;
  if (form === 'network') return convertNetworkContent(type, itemHash, content);
  if (!Object.hasOwn(READERS, type)) {
    throw new AppError(
      'UNKNOWN_MESSAGE_TYPE',
      `the type ${JSON.stringify(type)} is not accepted; accepted: ${MESSAGE_TYPES.join(', ')}`,
    );
  }
  return { type: type as MessageType, content: READERS[type as MessageType](content) };
}
