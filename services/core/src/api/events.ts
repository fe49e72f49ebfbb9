import type { ServerResponse } from 'node:http';
import { type Handlers, type NoShare, Shares } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import { type EVENTS_API, LATEST_CURSOR } from '@skerry/protocol/api/core/events';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { EventFeed } from '../notify/events/feed.ts';
import { type EventLog, parseCursor } from '../notify/events/log.ts';
import { Turns } from '../notify/events/turns.ts';
import type { Rooms, RouteSettings } from './rooms.ts';

const HEARTBEAT_MS = 15_000;
/** Pieces that are sent in one turn of the event loop: what others ask for comes between them. */
const PIECES_A_TURN = 2;
/** How long a reader that was let go has to notice it by itself. */
const LINGER_MS = 5_000;
const STREAM_HEADERS = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-store',
  'x-accel-buffering': 'no',
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
 * here for a slow reader. @returns whether the reader still reads; one that does not is to be let go
 */
async function streamEvents(from: number, stream: Stream): Promise<boolean> {
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
    if (!isRead && !signal.aborted) return false;
  }
  return true;
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

type Used = Pick<Rooms, 'events' | 'settings' | 'metrics' | 'clientOf' | 'signal'>;

/** All streams of a node: they share its turns, what they read, and the places that there are. */
class Streams {
  readonly #used: Used;
  readonly #shares: Shares;
  readonly #feed: EventFeed;
  readonly #turns = new Turns(PIECES_A_TURN);

  constructor(used: Used) {
    const { maxStreams: total, streamReserve: reserve, streamsPerClient: perClient } = used.settings;
    this.#used = used;
    this.#shares = new Shares({ total, reserve, perClient });
    this.#feed = new EventFeed(used.events);
  }

  /** Answers with a stream. Throws RATE_LIMITED, OVERLOADED before it begins. */
  async serve(from: number, request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const { clientOf, metrics, settings } = this.#used;
    const place = this.#shares.take(clientOf(request));
    if (typeof place === 'string') throw refusalOf(place, settings);
    metrics.streams.opened();
    try {
      await this.#send(from, request, reply);
    } finally {
      place.release();
      metrics.streams.closed();
      reply.raw.end();
    }
  }

  async #send(from: number, request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const { events: log, metrics, settings, signal: stopping } = this.#used;
    const { streamStallMs: stallMs } = settings;
    const response = reply.raw;
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    const signal = AbortSignal.any([gone.signal, stopping]);
    reply.hijack();
    response.writeHead(200, { ...(reply.getHeaders() as Record<string, string>), ...STREAM_HEADERS });
    const stream = { log, feed: this.#feed, turns: this.#turns, response, stallMs, signal };
    try {
      if (await streamEvents(from, stream)) return;
      metrics.streams.letGo();
      letGo(response, stallMs);
    } catch (error) {
      // The reader takes the stream up again at its cursor.
      if (!signal.aborted) request.log.warn({ err: error }, 'an event stream broke off');
    }
  }
}

/** The event stream (docs/api.md): server-sent events (WHATWG HTML, "Server-sent events"), or one page as JSON. */
export function eventHandlers(used: Used): Handlers<typeof EVENTS_API> {
  const streams = new Streams(used);
  return {
    async listEvents({ query, request, reply }) {
      const lastId = request.headers['last-event-id'];
      const asked = (typeof lastId === 'string' ? lastId : undefined) ?? query.cursor ?? '0';
      const cursor = asked === LATEST_CURSOR ? await used.events.lastCursor() : asked;
      const from = parseCursor(cursor);
      if ((request.headers.accept ?? '').includes('text/event-stream')) {
        await streams.serve(from, request, reply);
        return reply;
      }
      const page = await used.events.read(cursor, query.limit);
      return { events: page, next_cursor: page.at(-1)?.cursor ?? cursor };
    },
  };
}
