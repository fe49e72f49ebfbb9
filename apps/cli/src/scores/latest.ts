import { readLatestScores } from '@skerry/client';
import { AppError, parseEvmAddress } from '@skerry/protocol/forms';
import type { Context } from '../context.ts';
import { plainText, renderFields } from '../output/text.ts';
import { renderScores } from './render.ts';

/** The newest published scores, as they were signed. What a stranger published is shown as such: whoever published is told. */
export async function showLatest({ coreUrl, output }: Context, publisher: string | undefined): Promise<void> {
  const publishers = publisher === undefined ? undefined : [parseEvmAddress(publisher)];
  const latest = await readLatestScores({ coreUrl }, publishers);
  if (!latest) throw new AppError('MESSAGE_NOT_FOUND', 'no scores have been published yet');
  const { content, itemHash, publisher: address } = latest;
  if (!Array.isArray(content?.scores?.ccn) || !Array.isArray(content.scores.crn))
    throw new AppError('INVALID_CONTENT', `${itemHash} is not a scores message`);
  const facts = renderFields([
    ['publisher', plainText(address)],
    ['measured', plainText(content.measured_at ?? 'never')],
    ['item_hash', itemHash],
    ['verify', `skerry score verify ${itemHash}`],
  ]);
  const table = renderScores(content.scores);
  output.result(
    { publisher: address, item_hash: itemHash, ...content },
    table === '' ? facts : `${table}\n\n${facts}`,
  );
}
