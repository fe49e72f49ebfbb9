import { WEBHOOK_EVENTS, WebhookFilters } from '@skerry/protocol';
import Type from 'typebox';

const Reason = Type.Object({ code: Type.String(), message: Type.String() });
const orNull = (type: Type.TSchema, description: string) => Type.Union([type, Type.Null()], { description });
const Ms = Type.Integer();

/** What owners are answered. The secret is in none of it. */
const Webhook = Type.Object({
  webhook_id: Type.String(),
  owner: Type.String(),
  url: Type.String(),
  events: Type.Array(Type.Enum(WEBHOOK_EVENTS)),
  filters: WebhookFilters,
  concurrency: Type.Integer(),
  status: Type.Enum(['active', 'paused', 'disabled'], {
    description: '`disabled`: its endpoint answered 410',
  }),
  reason: orNull(Reason, 'why it is not active'),
  created_at: Type.Integer({ description: 'Unix seconds' }),
  updated_ms: Type.Integer({ description: 'Unix milliseconds' }),
  failing_since_ms: orNull(Ms, 'since when every attempt failed, Unix milliseconds'),
  delivered_ms: orNull(Ms, 'about when something was last delivered, Unix milliseconds'),
  old_secret_until_ms: orNull(Ms, 'until when the secret before signs too, Unix milliseconds'),
});

const Delivery = Type.Object({
  event_id: Type.String({ description: '`webhook-id` of its attempts' }),
  event: Type.String(),
  cursor: orNull(Type.String(), 'the event in the event log; null for a test'),
  state: Type.Enum(['waiting', 'delivered', 'dead']),
  attempts: Type.Integer(),
  planned_ms: Ms,
  next_attempt_ms: orNull(Ms, 'Unix milliseconds, while it waits'),
  settled_ms: orNull(Ms, 'when it was delivered or given up, Unix milliseconds'),
  log: Type.Array(
    Type.Object({
      at_ms: Ms,
      duration_ms: Type.Integer(),
      status: orNull(Type.Integer(), 'HTTP status, where there was an answer'),
      code: Type.Optional(Type.String()),
      message: Type.Optional(Type.String()),
    }),
    { description: 'the last attempts' },
  ),
});

const NextCursor = orNull(Type.String(), 'for the next page; null after the last');

export const ACTION_VIEWS = {
  list: Type.Object({ webhooks: Type.Array(Webhook), next_cursor: NextCursor }),
  show: Type.Object({
    ...Webhook.properties,
    waiting: Type.Integer({ description: 'deliveries that wait' }),
  }),
  pause: Webhook,
  resume: Webhook,
  rotate: Webhook,
  test: Type.Object({ webhook_id: Type.String(), event_id: Type.String() }),
  delete: Type.Object({ webhook_id: Type.String(), status: Type.Literal('deleted') }),
  deliveries: Type.Object({ deliveries: Type.Array(Delivery), next_cursor: NextCursor }),
  replay: Type.Object({
    webhook_id: Type.String(),
    from_cursor: Type.String({ description: 'the first event of the range' }),
    to_cursor: Type.String({ description: 'the last; smaller than the first where the range is empty' }),
  }),
} as const;
