import { setTimeout as delay } from 'node:timers/promises';
import type { CoreClient } from '@skerry/client';
import { AppError, isErrorCode } from '@skerry/protocol/forms';
import { type Accepted, afterAccepted } from '../messages/accepted.ts';
import { renderDuration } from '../output/text.ts';

/** A core node acts on a request within a second, unless it has much to read. */
const LIMIT_MS = 60_000;
const FIRST_LOOK_MS = 100;
/** What takes longer is looked for less often. */
const LOOK_MAX_MS = 2_000;
const STAYS = 'it stays in place: "skerry indexer status" shows later what is indexed';

/** Waits until the core node has done what a message asks of its indexer. Throws TIMED_OUT, and why it was refused. */
export async function waitForRequest(
  core: Pick<CoreClient, 'listIndexRequests' | 'url'>,
  { address, hash }: { readonly address: string; readonly hash: string },
  limitMs = LIMIT_MS,
): Promise<void> {
  const endMs = performance.now() + limitMs;
  const sent: Accepted = { what: `the request ${hash} was sent`, ids: { item_hash: hash }, hint: STAYS };
  for (let lookMs = FIRST_LOOK_MS; ; lookMs = Math.min(LOOK_MAX_MS, 2 * lookMs)) {
    const requests = await afterAccepted(sent, () => core.listIndexRequests(address));
    const request = requests.find(({ item_hash: one }) => one === hash);
    if (request?.reason) throw refused(request.reason, hash);
    if (request) return;
    if (performance.now() >= endMs)
      throw new AppError(
        'TIMED_OUT',
        `${core.url} has not acted on the request ${hash} within ${renderDuration(limitMs)}`,
        {
          details: { item_hash: hash, hint: STAYS },
        },
      );
    await delay(lookMs);
  }
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
