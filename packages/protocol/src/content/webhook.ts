import { AppError } from '../errors.ts';
import { LIMITS } from '../limits.ts';
import { createParser } from '../schema.ts';
import { type Static, Type } from '../type.ts';
import { OnBehalfOf, PRINTABLE } from './on-behalf.ts';

export const WEBHOOK_EVENTS = [
  'message.new',
  'message.confirmed',
  'program.executed',
  'instance.status',
] as const;
export type WebhookEvent = (typeof WEBHOOK_EVENTS)[number];

const strict = { additionalProperties: false } as const;

const filter = (maxLength: number, description: string) =>
  Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength, pattern: PRINTABLE }), {
      minItems: 1,
      maxItems: LIMITS.webhookFilterValues,
      uniqueItems: true,
      description,
    }),
  );

/** An event is told where every filter that is given has one of the event's values. */
export const WebhookFilters = Type.Object(
  {
    types: filter(LIMITS.messageTypeChars, 'types of messages'),
    channels: filter(LIMITS.channelChars, 'channels of messages'),
    senders: filter(LIMITS.addressChars, 'senders of messages, owners of instances and programs'),
    tags: filter(LIMITS.tagChars, 'tags of messages, any of them'),
  },
  strict,
);
export type WebhookFilters = Static<typeof WebhookFilters>;

const Secret = Type.String({
  minLength: 1,
  maxLength: LIMITS.webhookSecretChars,
  description: 'deliveries are signed with it: `whsec_` and base64, or any text',
});

/**
 * WEBHOOK: tell this address of these events. It carries a secret, so it is never listed and never passed on
 * (docs/decisions.md 5).
 */
export const WebhookContent = Type.Object(
  {
    url: Type.String({ maxLength: LIMITS.urlChars, description: 'http or https' }),
    events: Type.Array(Type.Enum(WEBHOOK_EVENTS), {
      minItems: 1,
      maxItems: WEBHOOK_EVENTS.length,
      uniqueItems: true,
    }),
    secret: Secret,
    filters: Type.Optional(WebhookFilters),
    concurrency: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: LIMITS.webhookConcurrencyMax,
        description: 'deliveries under way at once; with 1 each begins after the one before has ended',
      }),
    ),
    address: Type.Optional(OnBehalfOf),
  },
  strict,
);
export type WebhookContent = Static<typeof WebhookContent>;

const parseShape = createParser(WebhookContent, 'content');

/**
 * The bytes that deliveries are signed with (Standard Webhooks, "Symmetric"): what `whsec_` stands before is base64, any
 * other text is itself. undefined: base64 is what follows `whsec_` is not.
 */
export function webhookKeyOf(secret: string): Uint8Array | undefined {
  if (!secret.startsWith('whsec_')) return new TextEncoder().encode(secret);
  const text = secret.slice('whsec_'.length);
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(text) || text.length % 4 !== 0) return undefined;
  return Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
}

function checkSecret(secret: string): void {
  if (webhookKeyOf(secret)) return;
  throw new AppError('INVALID_CONTENT', 'content.secret must be base64 after "whsec_"');
}

/** Where the address leads to is judged at delivery, when its name is resolved; here only its form. */
export function parseWebhookContent(value: unknown): WebhookContent {
  const content = parseShape(value);
  const url = URL.parse(content.url);
  if (!url || !/^https?:\/\//i.test(content.url) || url.hostname === '') {
    throw new AppError('INVALID_CONTENT', 'content.url must be an http or https URL');
  }
  if (url.username !== '' || url.password !== '') {
    throw new AppError('INVALID_CONTENT', 'content.url may not carry a user name or password');
  }
  checkSecret(content.secret);
  return content;
}

const unixMs = (description: string) =>
  Type.Optional(Type.Integer({ minimum: 0, description: `${description}, Unix milliseconds` }));
const pageSize = Type.Optional(Type.Integer({ minimum: 1, maximum: LIMITS.pageSizeMax }));
const Cursor = Type.Optional(
  Type.String({ maxLength: 128, description: '`next_cursor` of the page before' }),
);

/** What an owner may do with a webhook, and what each of it takes beside `action` and `webhook_id`. */
const ACTION_FIELDS = {
  list: { address: Type.Optional(OnBehalfOf), limit: pageSize, cursor: Cursor },
  show: {},
  pause: {},
  resume: {
    missed: Type.Optional(
      Type.Enum(['deliver', 'skip'], { description: 'events since the pause; `deliver` where left out' }),
    ),
  },
  test: {},
  rotate: {
    secret: Secret,
    overlap_seconds: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: LIMITS.webhookOverlapSecondsMax,
        description: 'how long deliveries are signed with the old secret too; a day where left out',
      }),
    ),
  },
  delete: {},
  deliveries: {
    state: Type.Optional(Type.Enum(['waiting', 'delivered', 'dead'])),
    limit: pageSize,
    cursor: Cursor,
  },
  replay: {
    event_id: Type.Optional(Type.String({ maxLength: 128, description: 'this one; or a range of time' })),
    since_ms: unixMs('events at this time or later'),
    until_ms: unixMs('events before this time; now where left out'),
  },
} as const;
export type WebhookAction = keyof typeof ACTION_FIELDS;
export const WEBHOOK_ACTIONS = Object.keys(ACTION_FIELDS) as WebhookAction[];

const WebhookId = Type.String({ minLength: 1, maxLength: 128, description: 'as registration answered it' });

/** The content of an owner's request; `webhook_id` stands in all but `list`. */
function actionContent<A extends WebhookAction>(action: A) {
  return Type.Object(
    {
      action: Type.Literal(action),
      ...(action === 'list' ? {} : { webhook_id: WebhookId }),
      ...ACTION_FIELDS[action],
    },
    strict,
  );
}

export const WebhookActionContents = {
  list: actionContent('list'),
  show: actionContent('show'),
  pause: actionContent('pause'),
  resume: actionContent('resume'),
  test: actionContent('test'),
  rotate: actionContent('rotate'),
  delete: actionContent('delete'),
  deliveries: actionContent('deliveries'),
  replay: actionContent('replay'),
} as const;

type Fields<A extends WebhookAction> = Static<ReturnType<typeof Type.Object<(typeof ACTION_FIELDS)[A]>>>;
/** `webhook_id` is empty in `list`. */
export type WebhookActionContent<A extends WebhookAction> = { action: A; webhook_id: string } & Fields<A>;

const PARSERS = Object.fromEntries(
  WEBHOOK_ACTIONS.map((action) => [action, createParser(WebhookActionContents[action], 'content')]),
) as Record<WebhookAction, (value: unknown) => unknown>;

/** Reads the content of a WEBHOOK message that does something with a webhook. Throws INVALID_CONTENT, UNKNOWN_FIELD. */
export function parseWebhookAction<A extends WebhookAction>(
  action: A,
  value: unknown,
): WebhookActionContent<A> {
  const content = PARSERS[action](value) as WebhookActionContent<WebhookAction>;
  if (content.action === 'rotate') checkSecret((content as WebhookActionContent<'rotate'>).secret);
  return { ...content, webhook_id: content.webhook_id ?? '' } as WebhookActionContent<A>;
}
