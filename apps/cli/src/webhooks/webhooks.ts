import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { WebhookAnswers, WebhookView } from '@skerry/protocol/api/core/webhooks';
import { AppError } from '@skerry/protocol/forms';
import { shellWord } from '@skerry/protocol/text/shell-word';
import { readAddress } from '../address.ts';
import { confirmLoss, type LossOptions } from '../confirm.ts';
import type { Context } from '../context.ts';
import { unreadable } from '../files/read-text.ts';
import { plainText, renderFields, renderTime } from '../output/text.ts';

export interface WebhookAddOptions {
  readonly event: string[];
  readonly type?: string[];
  readonly channel?: string[];
  readonly sender?: string[];
  readonly tag?: string[];
  readonly concurrency?: number;
  readonly secretFile?: string;
}
export interface ResumeOptions {
  readonly skipMissed?: boolean;
}
export interface RotateOptions {
  readonly secretFile?: string;
  readonly overlap?: number;
}
export interface DeliveriesOptions {
  readonly state?: string;
  readonly limit?: number;
  readonly cursor?: string;
}
export interface ReplayOptions {
  readonly event?: string;
  readonly since?: number;
  readonly until?: number;
}

type Fields = Readonly<Record<string, unknown>>;

const SECRET_BYTES = 32;

/** A secret never stands among the arguments, where every process of the machine can read it. */
async function chooseSecret(file: string | undefined): Promise<{ secret: string; isMade: boolean }> {
  if (file === undefined) {
    return { secret: `whsec_${randomBytes(SECRET_BYTES).toString('base64')}`, isMade: true };
  }
  try {
    return { secret: (await readFile(file, 'utf8')).trim(), isMade: false };
  } catch (error) {
    throw unreadable(file, error);
  }
}

export async function addWebhook(context: Context, options: WebhookAddOptions, url: string): Promise<void> {
  const { secret, isMade } = await chooseSecret(options.secretFile);
  const { type, channel, tag, concurrency } = options;
  const sender = options.sender && (await Promise.all(options.sender.map(readAddress)));
  const filters = Object.fromEntries(
    Object.entries({ types: type, channels: channel, senders: sender, tags: tag }).filter(
      ([, values]) => values !== undefined,
    ),
  );
  const core = await context.openWriter();
  const answer = await core.registerWebhook({
    url,
    events: options.event,
    secret,
    ...(Object.keys(filters).length > 0 ? { filters } : {}),
    ...(concurrency === undefined ? {} : { concurrency }),
  });
  if (isMade)
    context.output.note('this secret is shown only once; your endpoint needs it to verify deliveries');
  const shown = { ...answer, ...(isMade ? { secret } : {}) };
  context.output.result(
    shown,
    renderFields([
      ['webhook', answer.webhook_id],
      ['secret', isMade ? secret : undefined],
    ]),
  );
}

/** @param webhook where it was asked for alone, with how many deliveries wait */
const renderWebhook = (webhook: WebhookView & { readonly waiting?: number }) =>
  renderFields([
    ['webhook', webhook.webhook_id],
    ['url', plainText(webhook.url)],
    ['events', webhook.events.join(', ')],
    ...Object.entries(webhook.filters).map(
      ([name, values]) => [name, values.map(plainText).join(', ')] as const,
    ),
    ['parallel deliveries', webhook.concurrency],
    ['status', webhook.status],
    ['waiting', webhook.waiting],
    ['delivered', webhook.delivered_ms === null ? 'nothing yet' : renderTime(webhook.delivered_ms / 1000)],
    [
      'failing since',
      webhook.failing_since_ms === null ? undefined : renderTime(webhook.failing_since_ms / 1000),
    ],
    ['reason', webhook.reason ? `${plainText(webhook.reason.message)} (${webhook.reason.code})` : undefined],
  ]);

export async function listWebhooks(context: Context): Promise<void> {
  const core = await context.openSigned();
  const answer = await core.listWebhooks({ limit: 100 });
  const rows = answer.webhooks.map((one) => [
    one.webhook_id,
    one.status,
    one.events.join(','),
    plainText(one.url),
  ]);
  context.output.result(answer, context.output.table(['ID', 'STATUS', 'EVENTS', 'URL'], rows, 'no webhooks'));
}

/** What is asked of a webhook without more than its id. */
export type PlainAction = 'show' | 'pause' | 'test' | 'delete';

export async function askWebhook(
  context: Context,
  options: LossOptions,
  id: string,
  action: PlainAction,
): Promise<void> {
  if (action === 'delete') await confirmLoss(context, options, `Delete the webhook ${id}?`);
  const core = await (action === 'show' ? context.openSigned() : context.openWriter());
  const answer = await core.askWebhook(id, action);
  const text = 'event_id' in answer ? `event: ${answer.event_id}` : undefined;
  const shown = 'url' in answer ? renderWebhook(answer) : `deleted ${id}`;
  context.output.result(answer, text ?? shown);
}

export async function resumeWebhook(
  context: Context,
  { skipMissed }: ResumeOptions,
  id: string,
): Promise<void> {
  const core = await context.openWriter();
  const answer = await core.askWebhook(id, 'resume', { missed: skipMissed ? 'skip' : 'deliver' });
  context.output.result(answer, renderWebhook(answer));
}

export async function rotateWebhook(context: Context, options: RotateOptions, id: string): Promise<void> {
  const { secret, isMade } = await chooseSecret(options.secretFile);
  const overlap = options.overlap === undefined ? {} : { overlap_seconds: Math.ceil(options.overlap / 1000) };
  const core = await context.openWriter();
  const answer = await core.askWebhook(id, 'rotate', { secret, ...overlap });
  context.output.result(
    { ...answer, ...(isMade ? { secret } : {}) },
    isMade ? `secret: ${secret}` : renderWebhook(answer),
  );
}

export async function listDeliveries(
  context: Context,
  options: DeliveriesOptions,
  id: string,
): Promise<void> {
  const core = await context.openSigned();
  const answer = await core.askWebhook(id, 'deliveries', { ...options });
  const rows = answer.deliveries.map((one) => {
    const last = one.log.at(-1);
    return [
      one.event_id,
      one.event,
      one.state,
      String(one.attempts),
      last === undefined ? '' : [last.status, last.code].filter((one) => one != null).join(' '),
      renderTime(one.planned_ms / 1000),
    ];
  });
  context.output.result(
    answer,
    context.output.table(['EVENT ID', 'EVENT', 'STATE', 'TRIES', 'LAST', 'TIME'], rows, 'no deliveries'),
  );
  if (answer.next_cursor !== null) {
    const cursor = shellWord(answer.next_cursor);
    context.output.note(`there are more: "skerry webhook deliveries ${shellWord(id)} --cursor ${cursor}"`);
  }
}

/** Durations are read back from now. */
function rangeOf({ event, since, until }: ReplayOptions): Fields {
  const isPeriod = since !== undefined || until !== undefined;
  if (event !== undefined && !isPeriod) return { event_id: event };
  if (event !== undefined || since === undefined)
    throw new AppError(
      'INVALID_PARAMETERS',
      'choose what to deliver again: either --event, or --since and perhaps --until',
    );
  if (until !== undefined && until >= since)
    throw new AppError('INVALID_PARAMETERS', '--until must be before --since, otherwise the period is empty');
  const nowMs = Date.now();
  return { since_ms: nowMs - since, ...(until === undefined ? {} : { until_ms: nowMs - until }) };
}

function renderReplay(
  { from_cursor: from, to_cursor: to }: WebhookAnswers['replay'],
  event?: string,
): string {
  if (event !== undefined) return `${plainText(event)} will be delivered again`;
  return Number(from) > Number(to)
    ? 'no events in this period'
    : `events ${from} to ${to} will be delivered again, those that the webhook is for`;
}

export async function replayWebhook(context: Context, options: ReplayOptions, id: string): Promise<void> {
  const core = await context.openWriter();
  const answer = await core.askWebhook(id, 'replay', rangeOf(options));
  context.output.result(answer, renderReplay(answer, options.event));
}
