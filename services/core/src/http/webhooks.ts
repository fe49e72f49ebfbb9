import type { HttpServer } from '@skerry/kit';
import { WebhookContent } from '@skerry/protocol';
import Type from 'typebox';
import { takesSigned } from './declare.ts';
import type { Rooms } from './rooms.ts';
import { readBodiesAsBytes, submitBody } from './submission.ts';

/** Webhooks: register (specification, "Webhooks"). */
export async function webhookRoutes(app: HttpServer, rooms: Rooms): Promise<void> {
  readBodiesAsBytes(app);

  app.post(
    '/webhooks',
    {
      schema: {
        summary: 'Register a webhook (signed WEBHOOK); the message is kept private',
        response: {
          200: Type.Object({ webhook_id: Type.String(), status: Type.Literal('success') }),
        },
      },
      config: takesSigned({ type: 'WEBHOOK', content: WebhookContent }),
    },
    async (request) => {
      const { message } = await submitBody(rooms, request.body, { type: 'WEBHOOK' });
      return { webhook_id: message.itemHash, status: 'success' as const };
    },
  );
}
