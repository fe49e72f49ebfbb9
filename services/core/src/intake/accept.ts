import {
  AppError,
  convertNetworkContent,
  type VerifiedMessage,
  whyTooLongWrittenOut,
} from '@skerry/protocol';
import { type Accepted, acceptAs, type Kind, pending, rejected } from './accepted.ts';
import { pinEffect } from './effects/files.ts';
import { checkPublic, findKind, MESSAGE_TYPES, PRIVATE_TYPES } from './kinds.ts';

/** A message whose content is a file that is not at hand. */
const acceptWithoutContent = (message: VerifiedMessage): Accepted =>
  acceptAs(message, {
    needs: { files: [message.itemHash] },
    decide: () =>
      pending('CONTENT_NOT_FOUND', `the content ${message.itemHash} of the message is not here yet`),
  });

function readContent({ form, type, itemHash, content }: VerifiedMessage): {
  kind: Kind<unknown>;
  content: unknown;
} {
  checkPublic(type);
  if (form === 'network') {
    const converted = convertNetworkContent(type, itemHash, content);
    return { kind: findKind(converted.type)!, content: converted.content };
  }
  const kind = findKind(type);
  if (!kind)
    throw new AppError(
      'UNKNOWN_MESSAGE_TYPE',
      `the type ${JSON.stringify(type)} is not accepted; accepted: ${MESSAGE_TYPES.join(', ')}`,
    );
  return { kind, content: kind.read(content) };
}

/**
 * A content whose numbers fill the database's answers is not kept beside the text that was signed, and none is that came as a file. What it
 * did is known, to be taken back where an earlier release put it in force.
 */
const withoutContent = (accepted: Accepted, reason: string): Accepted => ({
  ...accepted,
  message: { ...accepted.message, content: null },
  decide: () => rejected('INVALID_CONTENT', reason),
});

/** Why a content is not kept. What an upload says besides naming its file is the node's, and short. */
const whyNotKept = ({ form, content }: VerifiedMessage) =>
  form === 'upload' ? undefined : whyTooLongWrittenOut(content);

/**
 * Everything about a verified message that is decidable without I/O. Throws UNKNOWN_MESSAGE_TYPE and what its kind throws.
 * @param isNew whether what would be in vain is refused (Kind.checkNew)
 */
export function acceptMessage(message: VerifiedMessage, isNew = false): Accepted {
  if (message.content === null && !PRIVATE_TYPES.includes(message.type)) return acceptWithoutContent(message);
  const { kind, content } = readContent(message);
  const accepted = acceptAs(message, kind.accept(message, content));
  const reason = whyNotKept(message);
  if (isNew) {
    if (reason !== undefined) throw new AppError('INVALID_CONTENT', reason);
    kind.checkNew?.(content);
  }
  const kept = reason === undefined ? accepted : withoutContent(accepted, reason);
  // A content that is a file stays for as long as its message does.
  return message.sourceText === null
    ? { ...kept, changes: [...kept.changes, pinEffect.change({ fileHash: message.itemHash })] }
    : kept;
}
