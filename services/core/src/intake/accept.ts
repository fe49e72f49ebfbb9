import { AppError, convertNetworkContent, type VerifiedMessage } from '@skerry/protocol';
import { type Accepted, acceptAs, type Kind, pending } from './accepted.ts';
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
 * Everything about a verified message that is decidable without I/O. Throws UNKNOWN_MESSAGE_TYPE and what its kind throws.
 * @param isNew whether what would be in vain is refused (Kind.checkNew)
 */
export function acceptMessage(message: VerifiedMessage, isNew = false): Accepted {
  if (message.content === null && !PRIVATE_TYPES.includes(message.type)) return acceptWithoutContent(message);
  const { kind, content } = readContent(message);
  const accepted = acceptAs(message, kind.accept(message, content));
  if (isNew) kind.checkNew?.(content);
  // A content that is a file stays for as long as its message does.
  return message.sourceText === null
    ? { ...accepted, changes: [...accepted.changes, pinEffect.change({ fileHash: message.itemHash })] }
    : accepted;
}
