import { hash } from 'node:crypto';

const DIGEST_CHARS = 24;

/**
 * The id of a delivery (`webhook-id`): the same at every attempt and replay, and nobody else's. It says the event's
 * number; the rest keeps apart webhooks, nodes, and a log that was taken back to an older state.
 * @param seq the event's number; negative for a test
 */
export function eventIdOf(webhookId: string, seq: number, timeMs: number): string {
  const digest = hash('sha256', `${webhookId}\n${seq}\n${timeMs}`);
  return `${seq < 0 ? 'test' : 'evt'}_${Math.abs(seq)}_${digest.slice(0, DIGEST_CHARS)}`;
}

/** The event's number in an id; undefined: no such id. */
export function parseEventId(id: string): number | undefined {
  const [, kind, digits] = /^(evt|test)_([0-9]{1,15})_[0-9a-f]{24}$/.exec(id) ?? [];
  if (digits === undefined) return undefined;
  return kind === 'test' ? -Number(digits) : Number(digits);
}
