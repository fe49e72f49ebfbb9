import {
  buildNetworkMessage,
  buildStoredMessage,
  type CoreClient,
  call,
  type MessageDraft,
  type NetworkDraft,
  type Patiently,
  publishMessage,
  type Signer,
  signMessage,
} from '@skerry/client';
import { AppError, fieldsOf, LIMITS, type VerifiedMessage } from '@skerry/protocol';
import { MESSAGES_API } from '@skerry/protocol/api/core/messages';
import type { AdoptedKind } from './kinds.ts';

/** Of a content that travels inline, for address and time before it. */
const INLINE_ROOM = 256;

/** What another key signs in place of a message: the same, with the same date. */
export type CopyDraft =
  | ({ readonly form: 'network' } & NetworkDraft)
  /** Of a stop, which the network form does not have. */
  | ({ readonly form: 'envelope'; readonly instanceId: string } & MessageDraft);

type Original = Pick<VerifiedMessage, 'itemHash' | 'type' | 'time' | 'content'>;

function stopOf({ itemHash, time, content }: Original, channel: string): CopyDraft | undefined {
  const { action, instance_id: instanceId } = fieldsOf(content);
  if (action !== 'stop' || typeof instanceId !== 'string') return undefined;
  const said = { instance_id: instanceId, action };
  // Of the original's name, so that signed again it is the same message.
  return {
    ...{ form: 'envelope', instanceId, type: 'INSTANCE_CONTROL', channel },
    ...{ content: said, timestamp: Math.floor(time), nonce: itemHash },
  };
}

/** A pure function of the message, so that whoever is interrupted begins again; undefined of what is none of the kind. */
export function draftOf(
  original: Original,
  { channel, posts, aggregates, stops }: AdoptedKind,
): CopyDraft | undefined {
  const { type, time } = original;
  if (type === 'INSTANCE_CONTROL') return stops ? stopOf(original, channel) : undefined;
  const { type: postType, key, content: inner } = fieldsOf(original.content);
  const isPost = type === 'POST' && posts.includes(String(postType));
  const isAggregate = type === 'AGGREGATE' && aggregates.includes(String(key));
  if (!isPost && !isAggregate) return undefined;
  const said = isPost ? { type: postType, content: inner } : { key, content: inner };
  return { form: 'network', type, channel, time, content: said, sync: true };
}

export interface Copy {
  readonly form: CopyDraft['form'];
  readonly body: string;
  readonly itemHash: string;
  /** A file that is stored before the message is sent. */
  readonly file?: string;
}

/** Signs a copy. It is the same message each time. */
export function signCopy(draft: CopyDraft, signer: Signer): Copy {
  const { form } = draft;
  if (draft.form === 'envelope') return { form, ...signMessage(draft, signer) };
  const isLong = JSON.stringify(draft.content).length > LIMITS.inlineContentChars - INLINE_ROOM;
  if (!isLong) return { form, ...buildNetworkMessage(draft, signer) };
  const { content: file, ...stored } = buildStoredMessage(draft, signer);
  return { form, ...stored, file };
}

/** A core node keeps what nobody may sign yet, and decides again once the key is in its list. */
const isKept = (error: unknown) => error instanceof AppError && error.code === 'NOT_PERMITTED';

export async function sendCopy(
  core: CoreClient,
  { form, ...copy }: Copy,
  patiently: Patiently,
): Promise<void> {
  const { body, itemHash, file } = copy;
  if (form === 'envelope') {
    const sending = patiently(() => call(core.url, MESSAGES_API.submitMessage, { body }, core.options));
    await sending.catch((error) => {
      if (!isKept(error)) throw error;
    });
    return;
  }
  if (file !== undefined) await patiently(() => core.storeFile(new Blob([file]), 'content.json', itemHash));
  await patiently(() => publishMessage(core.url, body, core.options));
}
