import type { HttpServer } from '@skerry/kit';
import { type ErrorCode, type WebhookAction, WebhookActionContents, WebhookContent } from '@skerry/protocol';
import Type from 'typebox';
import { checkType } from '../messages/intake.ts';
import { listOwn, runAction } from '../webhooks/actions.ts';
import { takesSigned } from './declare.ts';
import type { Rooms } from './rooms.ts';
import { readBodiesAsBytes, submitBody } from './submission.ts';
import { ACTION_VIEWS } from './webhook-views.ts';

type OwnAction = Exclude<WebhookAction, 'list'>;

/** What an owner may do with one webhook, and what each may refuse beside what all of them do. */
const OWN_ACTIONS: Readonly<Record<OwnAction, readonly [summary: string, ...errors: ErrorCode[]]>> = {
  show: ['A webhook, without its secret'],
  pause: ['Deliver nothing until it is resumed'],
  resume: ['Deliver again, after a pause or after the endpoint answered 410'],
  test: ['Deliver a `webhook.test` now', 'WEBHOOK_NOT_ACTIVE'],
  rotate: ['Sign with another secret, for a time with both'],
  delete: ['Forget a webhook and what waits for it'],
  deliveries: ['What was delivered, what waits, what was given up', 'INVALID_CURSOR'],
  replay: [
    'Deliver one event, or those of a range of time, once more',
    'WEBHOOK_NOT_ACTIVE',
    'DELIVERY_NOT_FOUND',
  ],
};

const ASKED: readonly ErrorCode[] = ['TIMESTAMP_TOO_OLD', 'REQUEST_REPEATED'];

/**
 * Webhooks: register (specification, "Webhooks"), and what their owners do with them. The specification has no path for
 * the latter; here each is a POST of a signed WEBHOOK message that says what it is for, carried out once, never kept.
 */
export async function webhookRoutes(app: HttpServer, rooms: Rooms): Promise<void> {
  readBodiesAsBytes(app);

  const verify = async (body: unknown) => {
    const message = await rooms.intake.verify(Buffer.isBuffer(body) ? body : Buffer.alloc(0));
    checkType(message, 'WEBHOOK');
    return message;
  };

  app.post(
    '/webhooks',
    {
      schema: {
        summary: 'Register a webhook (signed WEBHOOK); the message is kept private',
        response: {
          200: Type.Object({ webhook_id: Type.String(), status: Type.Literal('success') }),
        },
      },
      config: takesSigned(
        { type: 'WEBHOOK', content: WebhookContent },
        'WEBHOOK_URL_REFUSED',
        'WEBHOOK_LIMIT',
      ),
    },
    async (request) => {
      const { message } = await submitBody(rooms, request.body, { type: 'WEBHOOK' });
      return { webhook_id: message.itemHash, status: 'success' as const };
    },
  );

  app.post(
    '/webhooks/list',
    {
      schema: {
        summary: 'The webhooks of an owner, newest first, without their secrets',
        response: { 200: ACTION_VIEWS.list },
      },
      config: takesSigned(
        { type: 'WEBHOOK', content: WebhookActionContents.list },
        ...ASKED,
        'INVALID_CURSOR',
      ),
    },
    async (request) => (await listOwn(rooms, await verify(request.body))) as never,
  );

  for (const [action, [summary, ...errors]] of Object.entries(OWN_ACTIONS) as [
    OwnAction,
    (typeof OWN_ACTIONS)[OwnAction],
  ][]) {
    app.post(
      `/webhooks/:webhook_id/${action}`,
      {
        schema: {
          summary,
          params: Type.Object({
            webhook_id: Type.String({ maxLength: 128, description: 'as registration answered it' }),
          }),
          response: { 200: ACTION_VIEWS[action] },
        },
        config: takesSigned(
          { type: 'WEBHOOK', content: WebhookActionContents[action] },
          ...ASKED,
          'WEBHOOK_NOT_FOUND',
          'ID_MISMATCH',
          ...(errors as ErrorCode[]),
        ),
      },
      async (request) => {
        const { webhook_id } = request.params as { webhook_id: string };
        const answer = await runAction(rooms, action, await verify(request.body), webhook_id);
        rooms.events.wake();
        return answer as never;
      },
    );
  }
}
