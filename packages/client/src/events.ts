import { AppError, type NetworkEvent } from '@skerry/protocol';
import { EVENTS_API } from '@skerry/protocol/api/core/events';
import { createParser as createEventParser } from 'eventsource-parser';
import { callRaw } from './call.ts';

export interface WatchOptions {
  /** The cursor of the last event seen; from the beginning where it is left out. */
  readonly cursor?: string | undefined;
  readonly signal: AbortSignal;
  /** Told of each lost connection, before the next try. */
  readonly onDisconnect?: (error: unknown, retryMs: number) => void;
}

/** The server sends a comment at least this often; silence for twice as long is a dead connection. */
export const HEARTBEAT_MS = 15_000;
const SILENCE_LIMIT_MS = 2 * HEARTBEAT_MS + 5_000;
const RETRY_BASE_MS = 100;
const RETRY_MAX_MS = 5_000;
const CONNECT_TIMEOUT_MS = 3_600_000;

const pause = (milliseconds: number, signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, milliseconds);
    signal.addEventListener('abort', done);
  });

/** One connection to the stream: events until it ends. Throws when it breaks, falls silent, or is refused. */
async function* readConnection(
  coreUrl: string,
  cursor: string | undefined,
  signal: AbortSignal,
): AsyncGenerator<NetworkEvent> {
  const silence = new AbortController();
  let watchdog = setTimeout(() => silence.abort(), SILENCE_LIMIT_MS);
  const ended = AbortSignal.any([signal, silence.signal]);
  try {
    const options = {
      headers: { accept: 'text/event-stream' },
      signal: ended,
      timeoutMs: CONNECT_TIMEOUT_MS,
    };
    const response = await callRaw(coreUrl, EVENTS_API.listEvents, { query: { cursor } }, options);
    const queue: NetworkEvent[] = [];
    const parser = createEventParser({
      onEvent: (event) => queue.push(JSON.parse(event.data) as NetworkEvent),
    });
    const decoder = new TextDecoder();
    for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
      clearTimeout(watchdog);
      watchdog = setTimeout(() => silence.abort(), SILENCE_LIMIT_MS);
      parser.feed(decoder.decode(chunk, { stream: true }));
      yield* queue.splice(0);
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
      for await (const event of readConnection(coreUrl, cursor, signal)) {
        failures = 0;
        cursor = event.cursor;
        yield event;
        if (signal.aborted) return;
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof AppError && error.kind === 'invalid') throw error;
      failure = error;
    }
    failures++;
    const retryMs = Math.min(RETRY_MAX_MS, RETRY_BASE_MS * 2 ** Math.min(failures - 1, 10));
    options.onDisconnect?.(failure, retryMs);
    await pause(retryMs, signal);
  }
}
