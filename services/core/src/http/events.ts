import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { HttpServer } from '@skerry/kit';
import { AppError, LIMITS, type NetworkEvent } from '@skerry/protocol';
import Type from 'typebox';
import { type EventLog, parseCursor } from '../events/log.ts';
import { reads } from './declare.ts';
import type { Rooms } from './rooms.ts';

const HEARTBEAT_MS = 15_000;
const READ_PAGE = 500;

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

const frame = (event: NetworkEvent) =>
  `id: ${event.cursor}\nevent: ${event.kind}\ndata: ${JSON.stringify(event)}\n\n`;

/** Sends events after the cursor for as long as the reader listens. A slow reader is read for slowly: nothing piles up here. */
async function streamEvents(
  log: EventLog,
  from: string,
  response: ServerResponse,
  signal: AbortSignal,
): Promise<void> {
  let cursor = from;
  let lastWriteMs = Date.now();
  const send = async (text: string) => {
    lastWriteMs = Date.now();
    if (!response.write(text)) await once(response, 'drain', { signal });
  };
  await send(': skerry events\n\n');
  while (!signal.aborted) {
    const more = log.waitForMore(signal);
    const events = await log.read(cursor, READ_PAGE);
    if (events.length > 0) {
      await send(events.map(frame).join(''));
      cursor = events.at(-1)!.cursor;
    } else if (Date.now() - lastWriteMs >= HEARTBEAT_MS) {
      await send(': still here\n\n');
    }
    if (events.length < READ_PAGE) await more;
  }
}

/** The event stream (docs/architecture.md): server-sent events (WHATWG HTML, "Server-sent events"), or one page as JSON. */
export async function eventRoutes(app: HttpServer, rooms: Rooms): Promise<void> {
  let streams = 0;

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
      if (streams >= rooms.settings.maxStreams) {
        throw new AppError(
          'OVERLOADED',
          `${rooms.settings.maxStreams} streams are open; use pages or try again later`,
        );
      }
      streams++;
      rooms.metrics.streams.opened();
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
        await streamEvents(rooms.events, cursor, reply.raw, signal);
      } catch (error) {
        // The reader takes the stream up again at its cursor.
        if (!signal.aborted) request.log.warn({ err: error }, 'an event stream broke off');
      } finally {
        streams--;
        rooms.metrics.streams.closed();
        reply.raw.end();
      }
      return reply;
    },
  );
}
