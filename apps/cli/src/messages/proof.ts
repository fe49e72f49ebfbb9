import { listedOf, verifyListed } from '@skerry/client';
import { AppError, canonicalJson, isItemHash64, type VerifiedMessage } from '@skerry/protocol';
import type { JudgedMessageView } from '@skerry/protocol/api/core/messages';
import { plainText } from '../output/text.ts';

/** What is known of a signature beside that it does not contradict what is shown. */
export interface Proof {
  readonly isVerified: boolean;
  readonly words: string;
}

const unproven = (why: string): Proof => ({ isVerified: false, words: `not verified: ${why}` });

/** Where an answer has what its hash and its signature cover; of what was forgotten or refused, nodes may keep less. */
function whyUnprovable({ status, content, message, messages, signed_text: text }: JudgedMessageView) {
  if (status === 'forgotten' && content === null) return 'nothing is left of it';
  const hasText = text !== null && (text.startsWith('{') || isItemHash64(text));
  return status === 'rejected' && !message && !messages && !hasText
    ? 'of a rejected message the core node gives no signed text'
    : undefined;
}

function differenceOf(view: JudgedMessageView, signed: VerifiedMessage): string | undefined {
  const { form, sender, type, time, channel, content } = signed;
  const told = form === 'network' ? (view.message?.content ?? view.content) : view.content;
  const isOfUpload = form === 'upload';
  const pairs: readonly (readonly [string, unknown, unknown])[] = [
    ['sender', view.sender.toLowerCase(), sender.toLowerCase()],
    ['type', view.type, type],
    ['time', view.timestamp, isOfUpload ? view.timestamp : Math.floor(time)],
    ['channel', view.channel, form === 'envelope' ? channel : view.channel],
    ['content', canonicalJson(told ?? null), canonicalJson(content ?? null)],
  ];
  const found = pairs.find(([, one, other]) => one !== other);
  return (
    found &&
    `${found[0]}: the core node says ${plainText(String(found[1]))}, signed was ${plainText(String(found[2]))}`
  );
}

const COVERED = {
  envelope: 'verified',
  network: 'verified; it does not cover the channel',
  upload: "verified; it covers the file's hash only",
} as const;

/**
 * Whether its sender signed a message as a core node tells of it.
 *
 * @throws AppError UNEXPECTED_ANSWER where nobody signed it so
 */
export async function proveShown(coreUrl: string, hash: string, view: JudgedMessageView): Promise<Proof> {
  const why = whyUnprovable(view);
  if (why !== undefined) return unproven(why);
  const refuse = (message: string, cause?: unknown) =>
    new AppError('UNEXPECTED_ANSWER', `${hash} was not signed as the core node shows it: ${message}`, {
      cause,
    });
  let signed: VerifiedMessage;
  try {
    signed = await verifyListed({ coreUrl }, listedOf(view));
  } catch (error) {
    if (!(error instanceof AppError) || error.kind === 'unavailable') throw error;
    if (error.code === 'CONTENT_NOT_FOUND') return unproven(error.message);
    throw refuse(error.message, error);
  }
  if (signed.itemHash !== hash) throw refuse(`its hash is ${signed.itemHash}`);
  const difference = differenceOf(view, signed);
  if (difference !== undefined) throw refuse(difference);
  return { isVerified: true, words: COVERED[signed.form] };
}
