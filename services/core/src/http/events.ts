import type { ServerResponse } from 'node:http';
import { type HttpServer, type NoShare, Shares } from '@skerry/kit';
import { AppError, LIMITS } from '@skerry/protocol';
import Type from 'typebox';
import { EventFeed } from '../events/feed.ts';
import { type EventLog, parseCursor } from '../events/log.ts';
import { Turns } from '../events/turns.ts';
import { reads } from './declare.ts';
import type { Rooms, RouteSettings } from './rooms.ts';

const HEARTBEAT_MS = 15_000;
/** Pieces that are sent in one turn of the event loop: what others ask for comes between them. */
const PIECES_A_TURN = 2;
/** How long a reader that was let go has to notice it by itself. */
const LINGER_MS = 5_000;

const Query = Type.Object(
  {
    cursor: Type.Optional(Type.String({ description: 'the last event seen; from the beginning without it' })),
    limit: Type.Integer({ minimum: 1, maximum: LIMITS.pageSizeMax, default: LIMITS.pageSizeDefault }),
  },
  { additionalProperties: false },
);

const PageView = Type.Object({
  events: Type.Array(
    Type.Object({
      cursor: Type.String(),
      kind: Type.String(),
      time_ms: Type.Integer({ description: 'Unix milliseconds' }),
      data: Type.Unknown({ description: 'what changed; its form follows from the kind' }),
    }),
  ),
  next_cursor: Type.String({ description: 'ask with it for what comes after' }),
});
const EventsView = {
  description: 'one page, or server-sent events where `Accept` asks for text/event-stream',
  content: {
    'application/json': { schema: PageView },
    'text/event-stream': { schema: Type.String() },
  },
};

/** Whether all that was written went out within the time. */
function drained(response: ServerResponse, timeoutMs: number, signal: AbortSignal): Promise<boolean> {
  if (!response.writableNeedDrain) return Promise.resolve(true);
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const timer = setTimeout(() => resolve(false), timeoutMs);
  const onDrain = () => resolve(true);
  const onAbort = () => resolve(false);
  response.once('drain', onDrain);
  signal.addEventListener('abort', onAbort);
  if (signal.aborted) onAbort();
  return promise.finally(() => {
    clearTimeout(timer);
    response.off('drain', onDrain);
    signal.removeEventListener('abort', onAbort);
  });
}

interface Stream {
  readonly log: EventLog;
  readonly feed: EventFeed;
  readonly turns: Turns;
  readonly response: ServerResponse;
  /** How long a reader may leave what it was given unread. */
  readonly stallMs: number;
  readonly signal: AbortSignal;
}

/**
 * Sends events after the cursor for as long as the reader listens: one piece at a time, so that no more than that waits
 * here for a slow reader. Resolves with the cursor at which a reader that does not read is let go.
 */
async function streamEvents(from: number, stream: Stream): Promise<number | undefined> {
  const { log, feed, turns, response, stallMs, signal } = stream;
  let cursor = from;
  let lastWriteMs = Date.now();
  const send = (text: string) => {
    lastWriteMs = Date.now();
    response.write(text);
    return drained(response, stallMs, signal);
  };
  response.write(': skerry events\n\n');
  while (!signal.aborted) {
    const more = log.waitForMore(signal);
    await turns.next();
    const piece = await feed.next(cursor);
    let isRead = true;
    if (piece.text !== '') {
      isRead = await send(piece.text);
      cursor = piece.cursor;
    } else {
      if (Date.now() - lastWriteMs >= HEARTBEAT_MS) isRead = await send(': still here\n\n');
      await more;
    }
    if (!isRead && !signal.aborted) return cursor;
  }
  return undefined;
}

/** Says why, for a reader that looks later after all, and ends the connection whether it does or not. */
function letGo(response: ServerResponse, stallMs: number): void {
  response.end(
    `: closed: nothing was read for ${stallMs} ms; connect again with the last cursor you have seen\n\n`,
  );
  const timer = setTimeout(() => response.destroy(), LINGER_MS);
  response.once('close', () => clearTimeout(timer));
}

/** Seconds: a place is free when some reader leaves, whenever that is. */
const RETRY_AFTER = 10;

function refusalOf(reason: NoShare, { streamsPerClient }: RouteSettings): AppError {
  const details = { retry_after: RETRY_AFTER };
  return reason === 'share'
    ? new AppError(
        'RATE_LIMITED',
        `a client may read ${streamsPerClient} event streams at once; close one, or ask for pages`,
        { details },
      )
    : new AppError('OVERLOADED', 'all event streams are taken; ask for pages, or try again later', {
        details,
      });
}

/** The event stream (docs/architecture.md): server-sent events (WHATWG HTML, "Server-sent events"), or one page as JSON. */
export async function eventRoutes(app: HttpServer, rooms: Rooms): Promise<void> {
  const { settings, metrics } = rooms;
  const shares = new Shares({
    total: settings.maxStreams,
    reserve: settings.streamReserve,
    perClient: settings.streamsPerClient,
  });
  const feed = new EventFeed(rooms.events);
  const turns = new Turns(PIECES_A_TURN);

  app.get(
    '/events',
    {
      schema: {
        summary: 'Changes after a cursor: a stream, or a page',
        querystring: Query,
        response: { 200: EventsView },
      },
      // A stream is one request, however long it is read; how many there are has a limit of its own.
      config: reads('INVALID_CURSOR', 'OVERLOADED'),
    },
    async (request, reply) => {
      const lastId = request.headers['last-event-id'];
      const cursor = (typeof lastId === 'string' ? lastId : undefined) ?? request.query.cursor ?? '0';
      parseCursor(cursor);
      if (!(request.headers.accept ?? '').includes('text/event-stream')) {
        const events = await rooms.events.read(cursor, request.query.limit);
        return { events, next_cursor: events.at(-1)?.cursor ?? cursor };
      }
      const place = shares.take(rooms.standingOf(request));
      if (typeof place === 'string') throw refusalOf(place, settings);
      metrics.streams.opened();
      const gone = new AbortController();
      reply.raw.once('close', () => gone.abort());
      const signal = AbortSignal.any([gone.signal, rooms.signal]);
      reply.hijack();
      const headers = {
        'content-type': 'text/event-stream',
        'cache-control': 'no-store',
        'x-accel-buffering': 'no',
      };
      reply.raw.writeHead(200, { ...(reply.getHeaders() as Record<string, string>), ...headers });
      try {
        const { streamStallMs: stallMs } = settings;
        const stream = { log: rooms.events, feed, turns, response: reply.raw, stallMs, signal };
        const stalledAt = await streamEvents(parseCursor(cursor), stream);
        if (stalledAt !== undefined) {
          metrics.streams.letGo();
          letGo(reply.raw, stallMs);
        }
      } catch (error) {
        // The reader takes the stream up again at its cursor.
        if (!signal.aborted) request.log.warn({ err: error }, 'an event stream broke off');
      } finally {
        place.release();
        metrics.streams.closed();
        reply.raw.end();
      }
      return reply;
    },
  );
}
