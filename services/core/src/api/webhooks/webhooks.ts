import type { Handlers } from '@skerry/kit';
import type { VerifiedMessage, WebhookAction } from '@skerry/protocol';
import type { WEBHOOKS_API, WebhookAnswers } from '@skerry/protocol/api/core/webhooks';
import { listOwn, runAction } from '../../notify/webhooks/owner-requests.ts';
import { submitBody } from '../messages/submit.ts';
import type { Rooms } from '../rooms.ts';

type Used = Pick<Rooms, 'db' | 'intake' | 'secrets' | 'now' | 'events' | 'clientOf' | 'longLists'>;

type OwnAction = Exclude<WebhookAction, 'list'>;

interface OwnRequest {
  readonly params: { readonly webhook_id: string };
  readonly body: Uint8Array;
}

/** Webhooks: register (specification, "Webhooks"), and what their owners do with them. */
export function webhookHandlers(rooms: Used): Handlers<typeof WEBHOOKS_API> {
  const { intake, events, clientOf, longLists } = rooms;
  const verify = (body: Uint8Array) => intake.client.verify(body, 'WEBHOOK');
  async function run<A extends OwnAction>(
    action: A,
    message: VerifiedMessage,
    webhookId: string,
  ): Promise<WebhookAnswers[A]> {
    const answer = await runAction(rooms, action, message, webhookId);
    events.wake();
    return answer;
  }
  const own =
    <A extends OwnAction>(action: A) =>
    async ({ params, body }: OwnRequest): Promise<WebhookAnswers[A]> =>
      run(action, await verify(body), params.webhook_id);
  return {
    async registerWebhook({ body, request }) {
      const { message } = await submitBody({ intake }, body, { type: 'WEBHOOK', client: clientOf(request) });
      return { webhook_id: message.itemHash, status: 'success' };
    },
    listWebhooks: async ({ body }) => listOwn(rooms, await verify(body)),
    showWebhook: own('show'),
    pauseWebhook: own('pause'),
    resumeWebhook: own('resume'),
    testWebhook: own('test'),
    rotateWebhook: own('rotate'),
    deleteWebhook: own('delete'),
    async listDeliveries({ params, body, reply }) {
      const message = await verify(body);
      // In one transaction with what is written of the request, which waits for nothing.
      using _turn = message.content?.state === undefined ? undefined : await longLists.turnsOf(reply).take();
      return await run('deliveries', message, params.webhook_id);
    },
    replayWebhook: own('replay'),
  };
}
