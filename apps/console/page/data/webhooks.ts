import type { WebhookTask, WebhookTasks } from '../workers/webhooks.ts';
import { AskFailure } from './failure.ts';
import { identity } from './identity.ts';
import { CORE_URL } from './network.ts';
import { verify } from './workers.ts';

/** Asks about the reader's webhooks, once they have signed the question. Throws AskFailure. */
export async function askWebhook<N extends WebhookTask>(
  name: N,
  asked: WebhookTasks[N]['asked'],
): Promise<WebhookTasks[N]['answer']> {
  const by = identity.value;
  if (!by) throw new AskFailure('SIGNATURE_REQUIRED', 'this is signed, and no key is chosen');
  const answer = await verify('webhook', { coreUrl: CORE_URL, question: { name, asked } as never }, { by });
  return answer as WebhookTasks[N]['answer'];
}
