import type { ServerResponse } from 'node:http';
import { type Handlers, type NoShare, YieldingShares } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import { EVENT_KINDS, type EVENTS_API, HEARTBEAT_MS, LATEST_CURSOR } from '@skerry/protocol/api/core/events';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { withBodies } from '../notify/events/bodies.ts';
import { EventFeed, type Piece, type WantedKinds } from '../notify/events/feed.ts';
import { type EventLog, type EventPage, parseCursor } from '../notify/events/log.ts';
import { Turns } from '../notify/events/turns.ts';
import { oneOf, parseListFilter } from '../state/lists/parameters.ts';
import type { Rooms, RouteSettings } from './rooms.ts';
import { closing } from './shares/closing.ts';

/** Pieces that are sent in one turn of the event loop: what others ask for comes between them. */
const PIECES_A_TURN = 2;
/** What was forgotten is not told from memory for longer. */
const BODIES_KEPT_MS = 60_000;
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
  readonly kinds: WantedKinds;
  readonly turns: Turns;
  readonly response: ServerResponse;
  /** How long a reader may leave what it was given unread. */
  readonly stallMs: number;
  readonly signal: AbortSignal;
}

/** What was found after a cursor. */
interface Found {
  readonly piece: Piece;
  /** As they were before it was looked: nothing that was written since is slept through. */
  readonly wakes: number;
}

const NOTHING_FOUND: Found = { piece: { text: '', cursor: 0 }, wakes: 0 };

async function findNext(
  cursor: number,
  { log, feed, kinds, turns }: Pick<Stream, 'log' | 'feed' | 'kinds' | 'turns'>,
): Promise<Found> {
  const { wakes } = log;
  await turns.next();
  return { piece: await feed.next(cursor, kinds), wakes };
}

/**
 * Sends events after the cursor for as long as the reader listens: one piece at a time, so that no more than that waits
 * here for a slow reader. @param first what was found after the cursor
 * @returns whether the reader still reads; one that does not is to be let go
 */
async function streamEvents(from: number, first: Found, stream: Stream): Promise<boolean> {
  const { log, response, stallMs, signal } = stream;
  let cursor = from;
  let found = first;
  let lastWriteMs = performance.now();
  const send = (text: string) => {
    lastWriteMs = performance.now();
    response.write(text);
    return drained(response, stallMs, signal);
  };
  // An id alone is no event: it says from where to go on, also to whoever asked for what is new.
  response.write(`: skerry events\nid: ${from}\n\n`);
  while (!signal.aborted) {
    const { piece, wakes } = found;
    let isRead = true;
    if (piece.text !== '') isRead = await send(piece.text);
    // However many events of other kinds there were.
    else if (performance.now() - lastWriteMs >= HEARTBEAT_MS)
      isRead = await send(`: still here\nid: ${piece.cursor}\n\n`);
    if (piece.text === '' && piece.cursor === cursor)
      await log.waitForMore(wakes, signal, Math.ceil(lastWriteMs + HEARTBEAT_MS - performance.now()));
    cursor = piece.cursor;
    if (signal.aborted) break;
    if (!isRead) return false;
    found = await findNext(cursor, stream);
  }
  return true;
}

/** Says why, for a reader that looks later after all, and ends the connection whether it does or not. */
function letGo(response: ServerResponse, why: string): void {
  response.end(`: closed: ${why}; connect again with the last cursor you have seen\n\n`);
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

type Used = Pick<Rooms, 'db' | 'commonDb' | 'events' | 'settings' | 'metrics' | 'clientOf' | 'signal'>;

/** What a reader wants of the log. */
interface Asked {
  readonly from: number;
  readonly kinds: WantedKinds;
  /** Messages with their bodies. */
  readonly isProvable: boolean;
}

const isKind = oneOf(EVENT_KINDS);

/** Throws INVALID_PARAMETERS: a kind that nobody knows would never come. */
function kindsOf(text: string | undefined): WantedKinds {
  const asked = parseListFilter('kinds', text)?.map((kind) => isKind(kind, 'kinds'));
  return asked && EVENT_KINDS.filter((kind) => asked.includes(kind));
}

/** The log as one feed reads it for all. */
const provableLog = ({ commonDb, events }: Used) => ({
  ...withBodies(commonDb, events),
  lastCursor: () => events.lastCursor(),
  get wakes() {
    return events.wakes;
  },
});

/** All streams of a node: they share its turns, what they read, and the places that there are. */
class Streams {
  readonly #used: Used;
  readonly #shares: YieldingShares;
  readonly #feed: EventFeed;
  readonly #feedWithBodies: EventFeed;
  readonly #turns = new Turns(PIECES_A_TURN);

  constructor(used: Used) {
    const { maxStreams: total, streamReserve: reserve, streamsPerClient: perClient } = used.settings;
    this.#used = used;
    this.#shares = new YieldingShares({ total, reserve, perClient });
    this.#feed = new EventFeed(used.events);
    this.#feedWithBodies = new EventFeed(provableLog(used), { keptMs: BODIES_KEPT_MS });
  }

  /** Answers with a stream. Throws RATE_LIMITED, OVERLOADED, and what reading the first events throws, before it begins. */
  async serve(asked: Asked, request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const { clientOf, metrics, settings } = this.#used;
    const yielded = new AbortController();
    const place = this.#shares.take(clientOf(request), () => yielded.abort());
    if (typeof place === 'string') throw refusalOf(place, settings);
    metrics.streams.opened();
    try {
      await this.#send(asked, request, reply, yielded.signal);
    } finally {
      place.release();
      metrics.streams.closed();
    }
  }

  async #send(
    { from, kinds, isProvable }: Asked,
    request: FastifyRequest,
    reply: FastifyReply,
    yielded: AbortSignal,
  ): Promise<void> {
    const { events: log, metrics, settings, signal: stopping } = this.#used;
    const { streamStallMs: stallMs } = settings;
    const response = reply.raw;
    const signal = AbortSignal.any([closing(reply), stopping, yielded]);
    const feed = isProvable ? this.#feedWithBodies : this.#feed;
    const stream = { log, feed, kinds, turns: this.#turns, response, stallMs, signal };
    // Once the answer has begun, nobody can be told why there is nothing in it. Who has left waits for none.
    const first = signal.aborted ? NOTHING_FOUND : await findNext(from, stream);
    reply.hijack();
    response.writeHead(200, { ...(reply.getHeaders() as Record<string, string>), ...STREAM_HEADERS });
    try {
      const isRead = await streamEvents(from, first, stream);
      if (isRead && (!yielded.aborted || response.destroyed)) return;
      metrics.streams.letGo();
      letGo(
        response,
        isRead ? 'a client that has no stream takes its place' : `nothing was read for ${stallMs} ms`,
      );
    } catch (error) {
      // The reader takes the stream up again at its cursor.
      if (!signal.aborted) request.log.warn({ err: error }, 'an event stream broke off');
    } finally {
      response.end();
    }
  }
}

async function readPage(
  log: Pick<EventLog, 'read' | 'readKinds'>,
  cursor: string,
  limit: number,
  kinds: WantedKinds,
): Promise<EventPage> {
  if (kinds) return log.readKinds(cursor, limit, kinds);
  const events = await log.read(cursor, limit);
  return { events, cursor: events.at(-1)?.cursor ?? cursor };
}

/** The event stream (docs/api.md): server-sent events (WHATWG HTML, "Server-sent events"), or one page as JSON. */
export function eventHandlers(used: Used): Handlers<typeof EVENTS_API> {
  const streams = new Streams(used);
  const own = used.events.askedIn(used.db);
  const provable = withBodies(used.db, own);
  return {
    async listEvents({ query, request, reply }) {
      const lastId = request.headers['last-event-id'];
      const last = (typeof lastId === 'string' ? lastId : undefined) ?? query.cursor ?? '0';
      const cursor = last === LATEST_CURSOR ? await own.lastCursor() : last;
      const asked = { from: parseCursor(cursor), kinds: kindsOf(query.kinds) };
      await own.checkGiven(asked.from);
      const isProvable = query.bodies === 'shared';
      if ((request.headers.accept ?? '').includes('text/event-stream')) {
        // It takes no place, and would have nothing to wait for.
        if (request.method === 'HEAD') return reply.headers(STREAM_HEADERS).send();
        await streams.serve({ ...asked, isProvable }, request, reply);
        return reply;
      }
      const log = isProvable ? provable : own;
      const page = await readPage(log, cursor, query.limit, asked.kinds);
      return { events: [...page.events], next_cursor: page.cursor };
    },
  };
}
