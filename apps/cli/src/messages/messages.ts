import type { JudgedMessageView } from '@skerry/protocol/api/core/messages';
import {
  parseForgetContent,
  parseItemHash,
  parseMessageHash,
  parsePostContent,
} from '@skerry/protocol/forms';
import { confirmLoss, type LossOptions } from '../confirm.ts';
import type { Context } from '../context.ts';
import { jsonText, plainText, renderFields, renderTime } from '../output/text.ts';
import { readContent } from './content.ts';
import { proveShown } from './proof.ts';
import { verdictFields, whyOf } from './verdict.ts';

export interface MessagePostOptions {
  readonly type: string;
  readonly content: string;
  readonly channel?: string;
}

export interface MessageForgetOptions extends LossOptions {
  readonly reason?: string;
}

export async function postMessage(context: Context, options: MessagePostOptions): Promise<void> {
  const { type, channel } = options;
  const content = await readContent({ option: '--content', given: options.content }, context.stdin);
  if (type === 'POST') parsePostContent(content);
  const core = await context.openWriter();
  const answer = await core.postMessage({ type, content, ...(channel === undefined ? {} : { channel }) });
  context.output.result({ ...answer, ...verdictFields(answer) }, answer.item_hash);
}

function renderMessage(message: JudgedMessageView, signature: string): string {
  return renderFields([
    ['item_hash', message.item_hash],
    ['status', message.status],
    ['reason', whyOf(message.reason)],
    ['signature', signature],
    ['forgotten_by', message.forgotten_by?.map(plainText).join(' ')],
    ['type', plainText(message.type)],
    ['channel', plainText(message.channel ?? '')],
    ['sender', plainText(message.sender)],
    ['time', renderTime(message.timestamp)],
    ['content', jsonText(message.content, 2)],
  ]);
}

export async function getMessage({ reader, output, coreUrl }: Context, text: string): Promise<void> {
  const hash = parseItemHash(text);
  const message = await reader.getMessage(hash);
  const { isVerified, words } = await proveShown(coreUrl, hash, message);
  output.result({ ...message, signature_verified: isVerified }, renderMessage(message, words));
}

export async function forgetMessages(
  context: Context,
  texts: readonly string[],
  options: MessageForgetOptions,
): Promise<void> {
  const { reason } = options;
  for (const text of texts) parseMessageHash(text);
  const { hashes } = parseForgetContent({ hashes: texts, ...(reason === undefined ? {} : { reason }) });
  const core = await context.openWriter();
  const what = hashes.length === 1 ? 'this message' : `these ${hashes.length} messages`;
  await confirmLoss(context, options, `Forget ${what}, which no node keeps then?`);
  const answer = await core.forget(hashes, reason);
  context.output.result({ ...answer, ...verdictFields(answer) }, answer.item_hash);
}
