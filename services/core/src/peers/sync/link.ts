import { causeOf } from '@skerry/client/cause';
import { partsMaxOf, pause } from '@skerry/kit';
import {
  AppError,
  decodeAnswer,
  encodeKeys,
  encodeRanges,
  type Fields,
  fieldsOf,
  isErrorCode,
  NODE_PROOF_BYTES_MAX,
  NODE_PROOF_PATH,
  parseNodeUrl,
  RANGES_BODY_BYTES,
  type Range,
  type ShortKey,
  WANTED_KEYS_MAX,
} from '@skerry/protocol';
import { NEXT_PLACE_HEADER } from '@skerry/protocol/api/core/sync';
import type { FileSource } from '../../store/files/fetching/source.ts';
import { PAGE_MESSAGES } from './envelopes.ts';
import { decodeFrames, encodeFrames, FRAMES_BODY_BYTES } from './frames.ts';

/** What a node says of itself to those that keep in step with it. */
export interface PeerGreeting {
  /** Of the running process: how a node recognises itself. */
  readonly nodeId: string;
  /** Of its key, by its own word; undefined where it says none. */
  readonly address?: string | undefined;
  readonly messages: number;
  /** How many of them are forgotten; undefined where it does not compare these. */
  readonly forgotten?: number | undefined;
  /** What it says of the time, milliseconds; undefined where it does not. */
  readonly clock: PeerClock | undefined;
}

export interface PeerClock {
  /** Its machine's, since 1970. */
  readonly timeMs: number;
  /** What it adds to that. */
  readonly correctionMs: number;
}

/** What became of the messages of an offer. `known`: the peer had them already. */
export interface OfferTally {
  readonly taken: number;
  readonly known: number;
  readonly refused: number;
  readonly forged: number;
}

/** Port: another core node, as a source of messages. Adapters: HTTP (here), the simulator's network. */
export interface PeerLink {
  readonly name: string;
  greet(signal: AbortSignal): Promise<PeerGreeting>;
  /**
   * What the peer answers to a challenge for the place that it is reached at (node-proof.ts), unchecked; it proves nothing where the link
   * has no such way.
   */
  askProof?(challenge: string, signal: AbortSignal): Promise<Uint8Array>;
  /** @param of which of its messages; all where it is left out */
  askRanges(
    question: readonly Range[],
    signal: AbortSignal,
    of?: 'forgotten',
  ): Promise<{ answer: Range[]; sizeBytes: number }>;
  /** @param keys at most WANTED_KEYS_MAX */
  fetchMessages(keys: readonly ShortKey[], signal: AbortSignal): Promise<Buffer[]>;
  /** @param place '' for the start */
  fetchPage(place: string, signal: AbortSignal): Promise<{ frames: Buffer[]; next: string | null }>;
  /** Messages that the peer lacks and does not ask for. @param texts as nodes pass them on; an offer's limits hold */
  offer(texts: readonly string[], signal: AbortSignal): Promise<OfferTally>;
  /** A file of the peer; undefined: it has none to give. */
  readonly openFile?: FileSource['open'];
}

const REQUEST_TIMEOUT_MS = 60_000;
const GREETING_BYTES = 64 * 1024;
/** Of an EVM chain, with 0x. */
const ADDRESS_CHARS = 42;
const BINARY = 'application/octet-stream';
/** How long a peer's wish to be left alone is honoured within one request. */
const RETRY_AFTER_MS_MAX = 30_000;
/** How often a request is made again after such a wish. */
const RETRIES_MAX = 3;

/** The body. Throws PEER_MISBEHAVED where it is larger, or comes in parts that are too small. */
export async function readLimited(response: Response, limitBytes: number): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  const partsMax = partsMaxOf(limitBytes);
  let sizeBytes = 0;
  for await (const chunk of response.body ?? []) {
    sizeBytes += chunk.length;
    if (sizeBytes > limitBytes)
      throw new AppError('PEER_MISBEHAVED', `the peer's answer is larger than ${limitBytes} bytes`);
    if (chunks.push(chunk) > partsMax)
      throw new AppError('PEER_MISBEHAVED', "the peer's answer comes in parts of a few bytes");
  }
  return Buffer.concat(chunks);
}

async function failureOf(response: Response): Promise<AppError> {
  const text = (await readLimited(response, GREETING_BYTES)).toString();
  let code: unknown;
  try {
    code = fieldsOf(JSON.parse(text)).code;
  } catch {}
  return new AppError(
    isErrorCode(code) && code !== 'INTERNAL' ? code : 'UPSTREAM_UNAVAILABLE',
    `the peer returned ${response.status}`,
    { details: { status: response.status } },
  );
}

function parseObject(bytes: Buffer, url: string): Fields {
  try {
    return fieldsOf(JSON.parse(bytes.toString()));
  } catch (cause) {
    throw new AppError('PEER_MISBEHAVED', `the peer ${url} did not answer in JSON`, { cause });
  }
}

function readClock(clock: unknown): PeerClock | undefined {
  const { time_ms: timeMs, correction_ms: correctionMs } = fieldsOf(clock);
  return Number.isSafeInteger(timeMs) && Number.isSafeInteger(correctionMs)
    ? { timeMs: timeMs as number, correctionMs: correctionMs as number }
    : undefined;
}

function readAnswer(bytes: Buffer): Range[] {
  try {
    return decodeAnswer(bytes);
  } catch (cause) {
    throw new AppError('PEER_MISBEHAVED', 'the peer returned no ranges', { cause });
  }
}

function readTally(bytes: Buffer, offered: number, url: string): OfferTally {
  const tally = parseObject(bytes, url);
  const countOf = (name: keyof OfferTally) => {
    const count = tally[name];
    return typeof count === 'number' && count >= 0 && count <= offered ? count : 0;
  };
  return {
    taken: countOf('taken'),
    known: countOf('known'),
    refused: countOf('refused'),
    forged: countOf('forged'),
  };
}

function readGreeting(bytes: Buffer, url: string): PeerGreeting {
  const { node_id: nodeId, address, messages, forgotten, clock } = parseObject(bytes, url);
  if (typeof nodeId !== 'string' || !Number.isSafeInteger(messages))
    throw new AppError('PEER_MISBEHAVED', `the peer ${url} is not a core node that exchanges messages`);
  const isAddress = typeof address === 'string' && address.length <= ADDRESS_CHARS;
  return {
    nodeId,
    address: isAddress ? address : undefined,
    messages: messages as number,
    forgotten: Number.isSafeInteger(forgotten) ? (forgotten as number) : undefined,
    clock: readClock(clock),
  };
}

/** What every core node has, this one has not: it is another service, or the URL has too much path. */
function nameRoot(failure: unknown, url: string): unknown {
  if (!(failure instanceof AppError)) return failure;
  const { status } = (failure.details ?? {}) as { readonly status?: number };
  if (status !== 404) return failure;
  return new AppError(failure.code, `${url} is no core node (${failure.message}); name its root URL`, {
    cause: failure,
  });
}

/** Asks routes of one node. @param body what is posted; nothing where it is undefined */
type Ask = (
  path: string,
  body: Uint8Array | undefined,
  limitBytes: number,
  signal: AbortSignal,
) => Promise<{ readonly bytes: Buffer; readonly headers: Headers }>;

/** One that honours a peer's wish to be left alone for a moment. */
function createAsk(url: string, timeoutMs: number): Ask {
  const base = url.replace(/\/+$/, '');
  return async (path, body, limitBytes, signal) => {
    const timeout = AbortSignal.timeout(timeoutMs);
    const ended = AbortSignal.any([signal, timeout]);
    const posted = body && {
      method: 'POST',
      body: Buffer.from(body),
      headers: { 'content-type': BINARY },
    };
    let failed = '';
    try {
      for (let attempt = 1; ; attempt++) {
        failed = `the peer ${url} does not answer`;
        const response = await fetch(`${base}${path}`, { redirect: 'error', signal: ended, ...posted });
        failed = `the connection to the peer ${url} was lost`;
        if (response.ok) return { bytes: await readLimited(response, limitBytes), headers: response.headers };
        const retryAfterMs = Number(response.headers.get('retry-after')) * 1000;
        const failure = await failureOf(response);
        if (attempt > RETRIES_MAX || !(retryAfterMs > 0)) throw failure;
        await pause(Math.min(retryAfterMs, RETRY_AFTER_MS_MAX), ended);
        if (timeout.aborted && !signal.aborted)
          throw new AppError(
            'UPSTREAM_UNAVAILABLE',
            `the peer ${url} asks to wait longer than a request takes (${failure.message})`,
          );
        ended.throwIfAborted();
      }
    } catch (cause) {
      // Whatever happens between two nodes is no fault of this one.
      if (cause instanceof AppError || signal.aborted) throw cause;
      // A time limit has nothing more to say, and logs write a cause out.
      if (timeout.aborted)
        throw new AppError(
          'UPSTREAM_UNAVAILABLE',
          `the peer ${url} does not answer (no answer within ${timeoutMs} ms)`,
        );
      throw new AppError('UPSTREAM_UNAVAILABLE', `${failed} (${causeOf(cause)})`, { cause });
    }
  };
}

/** Another node's routes (api/sync.ts). Throws UPSTREAM_UNAVAILABLE, PEER_MISBEHAVED, and what the peer refuses with. */
export function createHttpLink(url: string, { timeoutMs = REQUEST_TIMEOUT_MS } = {}): PeerLink {
  const askRoot = createAsk(url, timeoutMs);
  const ask: Ask = (path, ...given) => askRoot(`/api/v0/sync${path}`, ...given);
  return {
    name: url,
    async greet(signal) {
      const { bytes } = await ask('/status', undefined, GREETING_BYTES, signal).catch((failure: unknown) => {
        throw nameRoot(failure, url);
      });
      return readGreeting(bytes, url);
    },
    async askProof(challenge, signal) {
      const query = new URLSearchParams({ challenge, place: parseNodeUrl(url) });
      const path = `${NODE_PROOF_PATH}?${query}`;
      return (await askRoot(path, undefined, NODE_PROOF_BYTES_MAX, signal)).bytes;
    },
    async askRanges(question, signal, of) {
      const body = encodeRanges(question);
      const { bytes } = await ask(of ? `/${of}` : '/ranges', body, RANGES_BODY_BYTES, signal);
      return { answer: readAnswer(bytes), sizeBytes: body.length + bytes.length };
    },
    async fetchMessages(keys, signal) {
      const { bytes } = await ask('/messages', encodeKeys(keys), FRAMES_BODY_BYTES, signal);
      return decodeFrames(bytes, WANTED_KEYS_MAX);
    },
    async fetchPage(place, signal) {
      const { bytes, headers } = await ask(`/messages?place=${place}`, undefined, FRAMES_BODY_BYTES, signal);
      return { frames: decodeFrames(bytes, PAGE_MESSAGES), next: headers.get(NEXT_PLACE_HEADER) || null };
    },
    async offer(texts, signal) {
      const { bytes } = await ask('/offers', encodeFrames(texts), GREETING_BYTES, signal);
      return readTally(bytes, texts.length, url);
    },
  };
}
