import type { CoreClient } from '@skerry/client';
import { backoffMs, pause } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import { AWAY } from './away.ts';

/** Where the bytes of files come from, also from one of them on. */
type BytesSource = Pick<CoreClient, 'getFile'>;

/** How often a file is gone on with; and what each part has to bring: a sender that ends each at once would have no end. */
const PARTS_MAX = 100;
const PART_BYTES_MIN = 1024 ** 2;
/** How often the rest is asked for of a node that does not answer: one that is started again does after a while. */
const ASKS_MAX = 5;
const REST_BASE_MS = 1_000;
const REST_MAX_MS = 15_000;

/** UPSTREAM_UNAVAILABLE where reading an answer failed; what its sender says, and what ended it on purpose, is told as it is. */
export function asBrokenOff(name: string, error: unknown): unknown {
  if (error instanceof AppError || (error as Error | null)?.name === 'AbortError') return error;
  return new AppError('UPSTREAM_UNAVAILABLE', `the core node broke off while it sent ${name}`, {
    cause: error,
  });
}

const isAway = (error: unknown) => error instanceof AppError && AWAY.has(error.code);
/** Nothing comes behind that byte. */
const isBeyondEnd = (error: unknown) => error instanceof AppError && error.code === 'RANGE_NOT_SATISFIABLE';

/**
 * Throws what the node answers, and UPSTREAM_UNAVAILABLE where it begins elsewhere.
 * @returns undefined where there is none: what broke off was the end, before it was told
 */
async function askRest(source: BytesSource, name: string, firstByte: number): Promise<Response | undefined> {
  for (let asks = 1; ; asks++) {
    try {
      const response = await source.getFile(name, undefined, firstByte);
      const range = response.headers.get('content-range');
      if (response.status === 206 && range?.startsWith(`bytes ${firstByte}-`)) return response;
      await response.body?.cancel().catch(() => {});
    } catch (error) {
      if (isBeyondEnd(error)) return undefined;
      if (asks >= ASKS_MAX || !isAway(error)) throw error;
      await pause(backoffMs(asks, REST_BASE_MS, REST_MAX_MS), NEVER);
      continue;
    }
    throw new AppError(
      'UPSTREAM_UNAVAILABLE',
      `the core node does not go on with ${name} where it broke off`,
    );
  }
}

/**
 * The bytes of a file, whose reader compares all of them with its name. Where they break off, the rest is asked for. It holds the
 * response until it is read: the client empties the body of one that nobody holds any more, and says nothing.
 *
 * @throws AppError UPSTREAM_UNAVAILABLE, and what the node answers
 */
export async function* bytesOf(
  source: BytesSource,
  name: string,
  first: Response,
): AsyncGenerator<Uint8Array> {
  let response = first;
  let takenBytes = 0;
  for (let parts = 1; ; parts++) {
    const begunBytes = takenBytes;
    try {
      for await (const chunk of response.body ?? []) {
        takenBytes += chunk.length;
        yield chunk;
      }
      return;
    } catch (error) {
      const failure = asBrokenOff(name, error);
      if (failure === error || parts >= PARTS_MAX || takenBytes - begunBytes < PART_BYTES_MIN) throw failure;
    }
    const rest = await askRest(source, name, takenBytes);
    if (!rest) return;
    response = rest;
  }
}

const NEVER = new AbortController().signal;
