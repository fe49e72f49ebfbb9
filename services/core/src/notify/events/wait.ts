import type { NetworkEvent } from '@skerry/protocol';
import type { EventLog, EventReads } from './log.ts';

const PAGE = 100;

/**
 * Whether an event after `cursor` fits, within `timeoutMs`.
 * @param reads how whoever waits reads the log
 */
export async function waitForEvent(
  log: Pick<EventLog, 'wakes' | 'waitForMore'>,
  reads: Pick<EventReads, 'read'>,
  cursor: string,
  fits: (event: NetworkEvent) => boolean,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<boolean> {
  const ended = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
  let at = cursor;
  while (!ended.aborted) {
    const { wakes } = log;
    const events = await reads.read(at, PAGE);
    if (events.some(fits)) return true;
    at = events.at(-1)?.cursor ?? at;
    if (events.length < PAGE) await log.waitForMore(wakes, ended);
  }
  return false;
}
