import { VERSION } from '@skerry/kit';
import type { Endpoint } from '../endpoints.ts';
import { eventIdOf } from '../event-id.ts';
import type { Claimed } from './deliveries.ts';
import type { Attempted } from './schedule.ts';
import type { Sender } from './send.ts';
import { signDelivery } from './sign.ts';

const USER_AGENT = `Skerry-Webhooks/${VERSION}`;

/** The event was deleted from the log: nothing is left to send. */
const GONE: Attempted = {
  ok: false,
  failure: {
    code: 'DELIVERY_NOT_FOUND',
    message: 'the event is no longer in the log',
    status: null,
    retryAfterMs: null,
  },
  durationMs: 0,
};

/** Sends one delivery to its endpoint, signed as of now (docs/webhooks.md). */
export async function attemptDelivery(
  sender: Sender,
  endpoint: Endpoint,
  { seq, body }: Claimed,
  nowMs: number,
): Promise<Attempted> {
  if (!body) return GONE;
  const id = eventIdOf(endpoint.webhookId, seq, body.timeMs);
  const timestamp = Math.floor(nowMs / 1000);
  const headers = {
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(body.text)),
    'user-agent': USER_AGENT,
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': signDelivery(endpoint.secrets(nowMs), id, timestamp, body.text),
  };
  return sender.send(endpoint.url, headers, body.text);
}
