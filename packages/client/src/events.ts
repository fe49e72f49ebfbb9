import { EVENTS_API, type EventKind, EventView, HEARTBEAT_MS } from '@skerry/protocol/api/core/events';
import { AppError, NETWORK_EVENTS, type NetworkEvent } from '@skerry/protocol/forms';
import { createParser as createEventParser } from 'eventsource-parser';
import { callRaw, createAnswerParser, parseJson } from './call.ts';
import { pause } from './pause.ts';
import { chunksOf } from './reads/chunks.ts';
import { failureOf } from './reads/read-body.ts';

export interface WatchOptions {
  /** The cursor of the last event seen; from the beginning where it is left out. */
  readonly cursor?: string | undefined;
  /** Only events of these kinds; of all where it is left out. */
  readonly kinds?: readonly EventKind[] | undefined;
  /** `shared`: each message, and each that changed an instance, with its body, so that its hash and signature can be checked (`verifyShared`). */
  readonly bodies?: 'shared' | undefined;
  readonly signal: AbortSignal;
  /** Told of each lost connection, before the next try. */
  readonly onDisconnect?: (error: unknown, retryMs: number) => void;
  /** Told of an event that has not the form of its kind. It is left out: the events after it count all the same. */
  readonly onUnreadable?: ((kind: string, error: AppError) => void) | undefined;
}

/** Silence for twice as long is a dead connection. */
const SILENCE_LIMIT_MS = 2 * HEARTBEAT_MS + 5_000;
const RETRY_BASE_MS = 100;
const RETRY_MAX_MS = 5_000;
/** Of an event that has not come to its end: several times the largest message. */
const EVENT_CHARS_MAX = 16 * 1024 ** 2;

const parseEvent = createAnswerParser(EventView, 'the event');
const parsers = new Map<string, (event: unknown) => NetworkEvent>(
  Object.entries(NETWORK_EVENTS).map(([kind, schema]) => [
    kind,
    createAnswerParser(schema, `the event ${kind}`),
  ]),
);

interface Told {
  readonly cursor: string;
  /** Undefined where only the cursor is told, the event cannot be read, or it is of a kind that only newer nodes know. */
  readonly event: NetworkEvent | undefined;
}

/** Throws UNEXPECTED_ANSWER for what is no event at all. */
function readEvent(text: string, onUnreadable: WatchOptions['onUnreadable']): Told {
  const told = parseEvent(parseJson(text, 'the event stream'));
  const { cursor, kind } = told;
  try {
    return { cursor, event: parsers.get(kind)?.(told) };
  } catch (error) {
    onUnreadable?.(kind, error as AppError);
    return { cursor, event: undefined };
  }
}

/** One connection to the stream: events until it ends. Throws when it breaks, falls silent, or is refused. */
async function* readConnection(
  coreUrl: string,
  cursor: string | undefined,
  { kinds, bodies, signal, onUnreadable }: WatchOptions,
): AsyncGenerator<Told> {
  const silence = new AbortController();
  const giveUp = () => {
    const why = `${new URL(coreUrl).origin} was silent for ${SILENCE_LIMIT_MS / 1_000} s`;
    silence.abort(new AppError('UPSTREAM_UNAVAILABLE', why));
  };
  let watchdog = setTimeout(giveUp, SILENCE_LIMIT_MS);
  const ended = AbortSignal.any([signal, silence.signal]);
  try {
    const options = {
      headers: { accept: 'text/event-stream' },
      signal: ended,
      // Silence ends it, and nothing else: it may go on for months.
      timeoutMs: Number.POSITIVE_INFINITY,
    };
    const response = await callRaw(
      coreUrl,
      EVENTS_API.listEvents,
      { query: { cursor, kinds: kinds?.join(','), bodies } },
      options,
    );
    const queue: Told[] = [];
    /** The last id without an event: where to go on all the same. */
    let bareId = '';
    let isTooLong = false;
    const parser = createEventParser({
      maxBufferSize: EVENT_CHARS_MAX,
      onId: (id) => {
        bareId = id;
      },
      onEvent: ({ data }) => {
        bareId = '';
        queue.push(readEvent(data, onUnreadable));
      },
      onError: ({ type }) => {
        isTooLong ||= type === 'max-buffer-size-exceeded';
      },
    });
    const decoder = new TextDecoder();
    if (!response.body) return;
    for await (const chunk of chunksOf(response.body)) {
      clearTimeout(watchdog);
      watchdog = setTimeout(giveUp, SILENCE_LIMIT_MS);
      parser.feed(decoder.decode(chunk, { stream: true }));
      if (isTooLong)
        throw new AppError('UNEXPECTED_ANSWER', `an event has more than ${EVENT_CHARS_MAX} characters`);
      yield* queue.splice(0);
      if (bareId !== '') yield { cursor: bareId, event: undefined };
      bareId = '';
    }
  } finally {
    clearTimeout(watchdog);
  }
}

/**
 * Every change of the network from a cursor on, then live, in order and each once: a lost connection is taken up again
 * at the last cursor. Ends when the signal does. Throws only what a retry cannot mend (a refused cursor).
 */
export async function* watchEvents(coreUrl: string, options: WatchOptions): AsyncGenerator<NetworkEvent> {
  const { signal } = options;
  let { cursor } = options;
  let failures = 0;
  while (!signal.aborted) {
    let failure: unknown = new AppError('UPSTREAM_UNAVAILABLE', 'the stream ended');
    try {
      for await (const { event, cursor: next } of readConnection(coreUrl, cursor, options)) {
        // Who is let in and sent away again comes no further, and rests longer each time.
        if (next !== cursor) failures = 0;
        cursor = next;
        if (event) yield event;
        if (signal.aborted) return;
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof AppError && error.kind === 'invalid') throw error;
      failure = failureOf(new URL(coreUrl).origin, error);
    }
    failures++;
    const retryMs = Math.min(RETRY_MAX_MS, RETRY_BASE_MS * 2 ** Math.min(failures - 1, 10));
    options.onDisconnect?.(failure, retryMs);
    await pause(retryMs, signal);
  }
}
