import { AppError, ownerOf, parseWebhookContent, type VerifiedMessage } from '@skerry/protocol';
import type { Kysely } from 'kysely';
import type { Schema } from '../db/schema.ts';
import type { SealedBox } from './sealed-box.ts';

/**
 * A WEBHOOK message carries a secret (design decision 7): it is verified and applied, and neither kept among the public
 * messages nor told to anybody. The secret is sealed with the node's own key before it reaches the database. Sent twice
 * it is the same webhook.
 */
export async function registerWebhook(
  { db, secrets }: { readonly db: Kysely<Schema>; readonly secrets: SealedBox },
  message: VerifiedMessage,
): Promise<void> {
  const { url, events, secret, address } = parseWebhookContent(message.content);
  if (address !== undefined && ownerOf(message.sender, { address }) !== message.sender) {
    throw new AppError('NOT_PERMITTED', 'a webhook is registered by its owner alone');
  }
  await db
    .insertInto('webhooks')
    .values({
      webhook_id: message.itemHash,
      owner: message.sender,
      url,
      events: [...events],
      secret: secrets.seal(secret, message.itemHash),
      created: message.time,
    })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}
