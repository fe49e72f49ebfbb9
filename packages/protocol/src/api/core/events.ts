import { LIMITS } from '../../limits.ts';
import { Type } from '../../type.ts';
import { NETWORK_EVENTS, type NetworkEvent } from '../../views.ts';
import { type Api, defaulted } from '../operation.ts';
import { bodiesQuery } from './common/bodies.ts';
import { reads } from './common/declare.ts';

/** Stands for the cursor of the newest event. */
export const LATEST_CURSOR = 'latest';

/** A stream that has nothing to tell sends a comment at least this often. */
export const HEARTBEAT_MS = 15_000;

export type EventKind = NetworkEvent['kind'];
export const EVENT_KINDS = Object.keys(NETWORK_EVENTS) as readonly EventKind[];

const EventsQuery = Type.Object(
  {
    cursor: Type.Optional(
      Type.String({
        description: `the last event seen; from the beginning without it, from now on with \`${LATEST_CURSOR}\``,
      }),
    ),
    limit: defaulted(
      Type.Integer({ minimum: 1, maximum: LIMITS.pageSizeMax, description: 'how many on a page' }),
      LIMITS.pageSizeDefault,
    ),
    kinds: Type.Optional(
      Type.String({ description: `only events of these kinds, comma-separated: ${EVENT_KINDS.join(', ')}` }),
    ),
    bodies: bodiesQuery,
  },
  { additionalProperties: false },
);

/** An event of any kind, also of those that newer nodes tell. `NETWORK_EVENTS` has the forms of the known ones. */
export const EventView = Type.Object(
  {
    cursor: Type.String(),
    kind: Type.String(),
    time_ms: Type.Integer({ description: 'Unix milliseconds' }),
    data: Type.Unknown({ description: 'what changed; its form follows from the kind' }),
    cause: NETWORK_EVENTS.instance.properties.cause,
    shared: NETWORK_EVENTS.message.properties.shared,
  },
  { title: 'Event' },
);

const EventPageView = Type.Object(
  {
    events: Type.Array(EventView),
    next_cursor: Type.String({ description: 'send it to get what comes after' }),
  },
  { title: 'EventPage' },
);

/** The event stream (docs/api.md): server-sent events (WHATWG HTML, "Server-sent events"), or one page as JSON. */
export const EVENTS_API = {
  listEvents: {
    method: 'GET',
    path: '/api/v0/events',
    summary: 'Read events after a cursor, as a stream or a page',
    // A stream is one request, however long it is read; how many there are has a limit of its own.
    ...reads('INVALID_CURSOR'),
    query: EventsQuery,
    answers: {
      200: {
        description: 'one page, or server-sent events where `Accept` asks for text/event-stream',
        content: { 'application/json': EventPageView, 'text/event-stream': Type.String() },
      },
    },
  },
} as const satisfies Api;
