import { readLatestScores, readNewestMetrics } from '@skerry/client';
import { AppError } from '@skerry/protocol/forms';
import type { Context } from '../context.ts';
import { readTrust } from '../nodes/trust.ts';
import { plainText, renderFields, renderTime } from '../output/text.ts';
import { publishersOf } from './publishers.ts';
import { renderScores } from './render.ts';

/** Why there are no scores of these: it is measured first, and then not every monitor publishes some. */
async function explainNone(coreUrl: string, publishers: readonly string[]): Promise<AppError> {
  const names = publishers.join(',');
  const [{ scoring_publishers: trusted }, newest] = await Promise.all([
    readTrust(coreUrl),
    readNewestMetrics({ coreUrl }, publishers),
  ]);
  const lowered = new Set(trusted.value.map((one) => one.toLowerCase()));
  const strangers = publishers.filter((one) => !lowered.has(one.toLowerCase()));
  const hints = [
    newest
      ? `measurements are there, the newest of ${renderTime(newest.time)}: "skerry score compute --publisher ${names}" computes scores from them; a monitor publishes some itself only with SKERRY_MONITOR_SCORES_EVERY_HOURS`
      : 'no measurements are there either: a monitor sends its first report at the end of its first hour',
    ...strangers.map(
      (one) =>
        `${coreUrl} does not count what ${one} measures: its operator has not put that address into SKERRY_CORE_SCORING_PUBLISHERS`,
    ),
  ];
  return new AppError('MESSAGE_NOT_FOUND', `${publishers.join(', ')}: no scores have been published yet`, {
    details: { hint: hints.join('; ') },
  });
}

/**
 * The newest scores of those whose measurements the core node trusts, as they were signed. Anybody may publish some: a stranger's
 * are shown to whoever asks for them.
 */
export async function showLatest({ coreUrl, output }: Context, publisher: string | undefined): Promise<void> {
  const publishers = await publishersOf({ coreUrl }, publisher);
  const latest = await readLatestScores({ coreUrl }, publishers);
  if (!latest) throw await explainNone(coreUrl, publishers);
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
