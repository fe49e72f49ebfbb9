import { setTimeout as delay } from 'node:timers/promises';
import type { CoreClient } from '@skerry/client';
import { AppError, isErrorCode } from '@skerry/protocol/forms';
import { afterAccepted } from '../messages/accepted.ts';
import type { Output } from '../output/output.ts';
import { renderDuration } from '../output/text.ts';

/** A core node acts on a request within a second, unless it has much to read. */
const LIMIT_MS = 60_000;
const FIRST_LOOK_MS = 100;
/** What takes longer is looked for less often. */
const LOOK_MAX_MS = 2_000;
const STAYS = 'it stays in place: "skerry indexer status" shows later what is indexed';

type Asked = Pick<CoreClient, 'listIndexRequests' | 'url'>;

interface Sent {
  readonly address: string;
  readonly hash: string;
}

/** What the core node says of a request once it has acted on it; undefined where that takes longer than the limit. */
async function findActedOn(core: Asked, { address, hash }: Sent, limitMs: number) {
  const endMs = performance.now() + limitMs;
  for (let lookMs = FIRST_LOOK_MS; ; lookMs = Math.min(LOOK_MAX_MS, 2 * lookMs)) {
    const requests = await core.listIndexRequests(address);
    const request = requests.find(({ item_hash: one }) => one === hash);
    if (request !== undefined || performance.now() >= endMs) return request;
    await delay(lookMs);
  }
}

/** Waits until the core node has done what a message asks of its indexer. Throws TIMED_OUT, and why it was refused. */
export async function waitForRequest(
  output: Output,
  core: Asked,
  sent: Sent,
  limitMs = LIMIT_MS,
): Promise<void> {
  const { hash } = sent;
  const accepted = { what: `the request ${hash} was sent`, ids: { item_hash: hash }, hint: STAYS };
  const request = await afterAccepted(output, accepted, () => findActedOn(core, sent, limitMs));
  if (request?.reason) throw refused(request.reason, hash);
  if (request) return;
  throw new AppError(
    'TIMED_OUT',
    `${core.url} has not acted on the request ${hash} within ${renderDuration(limitMs)}`,
    { details: { item_hash: hash, hint: STAYS } },
  );
}

function refused(
  { code, message }: { readonly code: string; readonly message: string },
  hash: string,
): AppError {
  const details = { item_hash: hash };
  return isErrorCode(code)
    ? new AppError(code, message, { details })
    : new AppError('UNEXPECTED_ANSWER', `the core node refused the request: ${message} (${code})`, {
        details,
      });
}
