import { createHmac } from 'node:crypto';
import { webhookKeyOf } from '@skerry/protocol';

/**
 * `webhook-signature` (Standard Webhooks 1.0.0): one `v1` for each secret in force, HMAC-SHA256 over id, timestamp and
 * body.
 * @param timestamp Unix seconds, of this attempt
 */
export function signDelivery(
  secrets: readonly string[],
  id: string,
  timestamp: number,
  body: string | Uint8Array,
): string {
  return secrets
    .map((secret) => {
      const key = webhookKeyOf(secret) ?? secret;
      const digest = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64');
      return `v1,${digest}`;
    })
    .join(' ');
}
