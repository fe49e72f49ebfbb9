import type { HttpServer } from '@skerry/kit';
import { AGGREGATES_API } from '@skerry/protocol/api/core/aggregates';
import { CREDITS_API } from '@skerry/protocol/api/core/credits';
import { ADDRESSES_API } from '@skerry/protocol/api/core/deployed/addresses';
import { NETWORK_LISTS_API } from '@skerry/protocol/api/core/deployed/lists';
import { INSTANCES_API } from '@skerry/protocol/api/core/instances';
import { MEASUREMENTS_API } from '@skerry/protocol/api/core/measurements';
import { MESSAGES_API } from '@skerry/protocol/api/core/messages';
import type { Operation } from '@skerry/protocol/api/operation';
import { parseCursor } from '../notify/events/log.ts';
import type { Rooms } from './rooms.ts';

/** In an answer: the number of the last event that this process had written by then. */
const LAST_EVENT_HEADER = 'x-last-event';
/** In a request: the answer has to know of all events up to this number, and need not be fresher. */
const AFTER_EVENT_HEADER = 'x-after-event';

/** Reads of what messages add up to; all of it is in the transaction that numbers the events. */
const FROM_STANDBYS: ReadonlySet<Operation | undefined> = new Set<Operation>(
  [
    MESSAGES_API,
    NETWORK_LISTS_API,
    ADDRESSES_API,
    AGGREGATES_API,
    INSTANCES_API,
    MEASUREMENTS_API,
    CREDITS_API,
  ].flatMap((api) => Object.values<Operation>(api).filter(({ method }) => method === 'GET')),
);

/**
 * Reads after one's own writes (docs/roles.md): whoever has written is told the number of the last event, and a read that names it may
 * be answered by a standby that has come so far. A read that names none is answered by the primary.
 * Reads go before what is submitted.
 */
export function serveReading(
  app: HttpServer,
  { reads, intake, lastEvent }: Pick<Rooms, 'reads' | 'intake' | 'lastEvent'>,
): void {
  app.addHook('onRequest', (request, _reply, done) => {
    const after = request.headers[AFTER_EVENT_HEADER];
    const isRead = FROM_STANDBYS.has(request.routeOptions.config.operation);
    // Who looks whether the node is well is nobody that waits.
    if (isRead) intake.client.noteReader();
    if (after === undefined || !isRead) {
      done();
      return;
    }
    let event: number;
    try {
      event = parseCursor(String(after));
    } catch (error) {
      done(error as Error);
      return;
    }
    reads.run(event, done);
  });
  app.addHook('onSend', ({ method }, reply, _payload, done) => {
    if (method !== 'GET' && method !== 'HEAD' && lastEvent() > 0)
      reply.header(LAST_EVENT_HEADER, String(lastEvent()));
    done();
  });
}
