import {
  WEBHOOK_EVENTS,
  type WebhookAction,
  WebhookActionContents,
  WebhookContent,
  WebhookFilters,
} from '../../content/webhook.ts';
import type { ErrorCode } from '../../errors.ts';
import { type Static, type TSchema, Type } from '../../type.ts';
import { type Api, orNull } from '../operation.ts';
import { takesSigned } from './common/declare.ts';

const Reason = Type.Object({ code: Type.String(), message: Type.String() });
const Ms = Type.Integer();

/** What owners are answered. The secret is in none of it. */
export const WebhookView = Type.Object(
  {
    webhook_id: Type.String(),
    owner: Type.String(),
    url: Type.String(),
    events: Type.Array(Type.Enum(WEBHOOK_EVENTS)),
    filters: WebhookFilters,
    concurrency: Type.Integer(),
    status: Type.Enum(['active', 'paused', 'disabled'], {
      description: '`disabled`: its endpoint answered 410',
    }),
    reason: orNull(Reason, { description: 'why it is not active' }),
    created_at: Type.Integer({ description: 'Unix seconds' }),
    updated_ms: Type.Integer({ description: 'Unix milliseconds' }),
    failing_since_ms: orNull(Ms, { description: 'since when every attempt failed, Unix milliseconds' }),
    delivered_ms: orNull(Ms, { description: 'roughly when something was last delivered, Unix milliseconds' }),
    old_secret_until_ms: orNull(Ms, {
      description: 'until when the previous secret also signs, Unix milliseconds',
    }),
  },
  { title: 'Webhook' },
);
export type WebhookView = Static<typeof WebhookView>;

export const DeliveryView = Type.Object(
  {
    event_id: Type.String({ description: '`webhook-id` of its attempts' }),
    event: Type.String(),
    cursor: orNull(Type.String(), { description: 'the event in the event log; null for a test' }),
    state: Type.Enum(['waiting', 'delivered', 'dead']),
    attempts: Type.Integer(),
    planned_ms: Ms,
    next_attempt_ms: orNull(Ms, { description: 'Unix milliseconds, while it waits' }),
    settled_ms: orNull(Ms, { description: 'when it was delivered or given up, Unix milliseconds' }),
    log: Type.Array(
      Type.Object({
        at_ms: Ms,
        duration_ms: Type.Integer(),
        status: orNull(Type.Integer(), { description: 'HTTP status, where there was an answer' }),
        code: Type.Optional(Type.String()),
        message: Type.Optional(Type.String()),
      }),
      { description: 'the last attempts' },
    ),
  },
  { title: 'Delivery' },
);
export type DeliveryView = Static<typeof DeliveryView>;

const NextCursor = orNull(Type.String(), { description: 'for the next page; null after the last' });

/** What each of an owner's requests is answered. */
const WEBHOOK_ANSWERS = {
  list: Type.Object({ webhooks: Type.Array(WebhookView), next_cursor: NextCursor }, { title: 'WebhookList' }),
  show: Type.Object(
    { ...WebhookView.properties, waiting: Type.Integer({ description: 'waiting deliveries' }) },
    { title: 'ShownWebhook' },
  ),
  pause: WebhookView,
  resume: WebhookView,
  rotate: WebhookView,
  test: Type.Object({ webhook_id: Type.String(), event_id: Type.String() }),
  delete: Type.Object({ webhook_id: Type.String(), status: Type.Literal('deleted') }),
  deliveries: Type.Object(
    { deliveries: Type.Array(DeliveryView), next_cursor: NextCursor },
    { title: 'DeliveryList' },
  ),
  replay: Type.Object({
    webhook_id: Type.String(),
    from_cursor: orNull(Type.String(), {
      description: 'the first event of the range; null for a test, which is no event',
    }),
    to_cursor: orNull(Type.String(), {
      description: 'the last event; smaller than the first if the range is empty, null for a test',
    }),
  }),
} as const satisfies Record<WebhookAction, TSchema>;
export type WebhookAnswers = { [A in WebhookAction]: Static<(typeof WEBHOOK_ANSWERS)[A]> };

/** What every signed request of an owner may be refused with. */
const ASKED = ['TIMESTAMP_TOO_OLD', 'REQUEST_REPEATED'] as const;

/** What an owner does with one webhook. */
const ownAction = <const A extends Exclude<WebhookAction, 'list'>>(
  action: A,
  summary: string,
  ...errors: ErrorCode[]
) =>
  ({
    method: 'POST',
    path: `/api/v0/webhooks/:webhook_id/${action}`,
    summary,
    ...takesSigned(
      { type: 'WEBHOOK', content: WebhookActionContents[action] },
      ...ASKED,
      'WEBHOOK_NOT_FOUND',
      'ID_MISMATCH',
      ...errors,
    ),
    params: Type.Object({
      webhook_id: Type.String({ maxLength: 128, description: 'the id that registration returned' }),
    }),
    answers: { 200: WEBHOOK_ANSWERS[action] },
  }) as const;

/**
 * Webhooks: register (specification, "Webhooks"), and what their owners do with them. The specification has no path for
 * the latter; here each is a POST of a signed WEBHOOK message that says what it is for, carried out once, never kept.
 */
export const WEBHOOKS_API = {
  registerWebhook: {
    method: 'POST',
    path: '/api/v0/webhooks',
    summary: 'Register a webhook (signed WEBHOOK); the message is kept private',
    ...takesSigned(
      { type: 'WEBHOOK', content: WebhookContent },
      'WEBHOOK_URL_REFUSED',
      'WEBHOOK_LIMIT',
      'WEBHOOK_NOT_FOUND',
      'TIMESTAMP_TOO_OLD',
    ),
    answers: { 200: Type.Object({ webhook_id: Type.String(), status: Type.Literal('success') }) },
  },
  listWebhooks: {
    method: 'POST',
    path: '/api/v0/webhooks/list',
    summary: "List an owner's webhooks, newest first, without their secrets",
    ...takesSigned({ type: 'WEBHOOK', content: WebhookActionContents.list }, ...ASKED, 'INVALID_CURSOR'),
    answers: { 200: WEBHOOK_ANSWERS.list },
  },
  showWebhook: ownAction('show', 'Get a webhook, without its secret'),
  pauseWebhook: ownAction('pause', 'Pause deliveries until the webhook is resumed'),
  resumeWebhook: ownAction('resume', 'Resume deliveries after a pause, or after the endpoint answered 410'),
  testWebhook: ownAction('test', 'Deliver a `webhook.test` event now', 'WEBHOOK_NOT_ACTIVE'),
  rotateWebhook: ownAction('rotate', 'Replace the secret; for a while, deliveries are signed with both'),
  deleteWebhook: ownAction('delete', 'Delete a webhook and its queued deliveries'),
  listDeliveries: ownAction(
    'deliveries',
    'List deliveries: done, waiting and given up',
    'INVALID_CURSOR',
    'LIST_TOO_COSTLY',
  ),
  replayWebhook: ownAction(
    'replay',
    'Deliver one event, or those of a time range, again',
    'WEBHOOK_NOT_ACTIVE',
    'DELIVERY_NOT_FOUND',
  ),
} as const satisfies Api;
