import { type PublishedScores, readNewestMetrics, saysNothing } from '@skerry/client';
import { AppError, fieldsOf } from '@skerry/protocol/forms';
import type { Context } from '../context.ts';
import { readTrust } from '../nodes/trust.ts';
import { plainText, renderFields, renderTime } from '../output/text.ts';
import { newestFirst, readLast } from './last.ts';
import { publishersOf } from './publishers.ts';
import { renderScores } from './render.ts';

/** The newest measurements of these, in words. */
async function describeMeasured(coreUrl: string, publishers: readonly string[]): Promise<string> {
  const names = publishers.join(',');
  try {
    const newest = await readNewestMetrics({ coreUrl }, publishers);
    return newest
      ? `measurements are there, the newest of ${renderTime(newest.time)}: "skerry score compute --publisher ${names}" computes scores from them; a monitor publishes some itself only with SKERRY_MONITOR_SCORES_EVERY_HOURS`
      : 'no measurements are there either: a monitor sends its first report at the end of its first hour';
  } catch (error) {
    if (!(error instanceof AppError) || saysNothing(error)) throw error;
    return `the newest measurements do not count: ${plainText(error.message)}`;
  }
}

/** Why there are no scores of these: it is measured first, and then not every monitor publishes some. */
async function explainNone(coreUrl: string, publishers: readonly string[]): Promise<AppError> {
  const [{ scoring_publishers: trusted }, measured] = await Promise.all([
    readTrust(coreUrl),
    describeMeasured(coreUrl, publishers),
  ]);
  const lowered = new Set(trusted.value.map((one) => one.toLowerCase()));
  const strangers = publishers.filter((one) => !lowered.has(one.toLowerCase()));
  const hints = [
    measured,
    ...strangers.map(
      (one) =>
        `${coreUrl} does not count what ${one} measures: its operator has not put that address into SKERRY_CORE_SCORING_PUBLISHERS`,
    ),
  ];
  return new AppError('MESSAGE_NOT_FOUND', `${publishers.join(', ')}: no scores have been published yet`, {
    details: { hint: hints.join('; ') },
  });
}

/** The rows that count, as they were signed. */
function signedRowsOf({ signed, odd }: PublishedScores) {
  const lists = fieldsOf(fieldsOf(signed).scores);
  const without = new Set(odd.map(({ at }) => at));
  const rowsOf = (name: 'ccn' | 'crn') => {
    const list = lists[name];
    return Array.isArray(list) ? list.filter((_, index) => !without.has(`${name}[${index}]`)) : [];
  };
  return { ccn: rowsOf('ccn'), crn: rowsOf('crn') };
}

/**
 * The newest of what each of those published last whose measurements the core node trusts. Anybody may publish some: a stranger's are
 * shown to whoever asks for them. What does not count is told beside, and hides no others.
 */
export async function showLatest(context: Context, publisher: string | undefined): Promise<void> {
  const { coreUrl, output } = context;
  const publishers = await publishersOf(context, publisher);
  const last = await readLast(context, publishers);
  const [latest] = newestFirst(last.scores);
  if (!latest) throw last.odd[0]?.error ?? (await explainNone(coreUrl, publishers));
  const { content, itemHash, publisher: address, odd } = latest;
  const { measured_at: measured } = content;
  const facts = renderFields([
    ['publisher', plainText(address)],
    ['measured', typeof measured === 'string' ? plainText(measured) : 'never'],
    ['item_hash', itemHash],
    ['verify', `skerry score verify ${itemHash}`],
  ]);
  const table = renderScores(content.scores);
  output.result(
    {
      ...{ ...content, publisher: address, item_hash: itemHash, scores: signedRowsOf(latest), odd },
      odd_publications: last.odd.map(({ publisher: signer, error: { code, message } }) => ({
        ...{ publisher: signer, code, message },
      })),
    },
    table === '' ? facts : `${table}\n\n${facts}`,
  );
}
