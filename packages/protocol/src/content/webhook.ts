import Type, { type Static } from 'typebox';
import { AppError } from '../errors.ts';
import { LIMITS } from '../limits.ts';
import { createParser } from '../schema.ts';
import { OnBehalfOf } from './on-behalf.ts';

export const WEBHOOK_EVENTS = [
  'message.new',
  'message.confirmed',
  'program.executed',
  'instance.status',
] as const;
export type WebhookEvent = (typeof WEBHOOK_EVENTS)[number];

/** WEBHOOK: tell this address of these events. It carries a secret, so it is never listed and never passed on (design decision 7). */
export const WebhookContent = Type.Object(
  {
    url: Type.String({ maxLength: LIMITS.urlChars, description: 'http or https' }),
    events: Type.Array(Type.Enum(WEBHOOK_EVENTS), {
      minItems: 1,
      maxItems: WEBHOOK_EVENTS.length,
      uniqueItems: true,
    }),
    secret: Type.String({
      minLength: 1,
      maxLength: LIMITS.webhookSecretChars,
      description: 'deliveries are authenticated with it',
    }),
    address: Type.Optional(OnBehalfOf),
  },
  { additionalProperties: false },
);
export type WebhookContent = Static<typeof WebhookContent>;

const parseShape = createParser(WebhookContent, 'content');

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
  return content;
}
