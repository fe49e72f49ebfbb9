import { readLatestScores } from '@skerry/client';
import { AppError } from '@skerry/protocol/forms';
import type { Context } from '../context.ts';
import { plainText, renderFields } from '../output/text.ts';
import { publishersOf } from './publishers.ts';
import { renderScores } from './render.ts';

/**
 * The newest scores of those whose measurements the core node trusts, as they were signed. Anybody may publish some: a stranger's
 * are shown to whoever asks for them.
 */
export async function showLatest({ coreUrl, output }: Context, publisher: string | undefined): Promise<void> {
  const latest = await readLatestScores({ coreUrl }, await publishersOf({ coreUrl }, publisher));
  if (!latest)
    throw new AppError('MESSAGE_NOT_FOUND', 'no scores have been published yet', {
      details: { hint: 'a monitor measures every node once an hour, and publishes scores after that' },
    });
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
