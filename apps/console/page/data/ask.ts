import { fields, type Reader, text } from '../pure/read.ts';
import { readUpTo } from '../pure/read-body.ts';
import { AskFailure } from './failure.ts';

const TIMEOUT_MS = 20_000;
/** Of a larger answer the rest is not read: it would freeze the page. */
export const ANSWER_BYTES_MAX = 32 * 1024 ** 2;

/** Whatever a service says, it is asked again within so long. */
const RETRY_SECONDS_MAX = 300;

const readRefusal = fields({ error: text, code: text });

function parse(answer: string, origin: string): unknown {
  try {
    return JSON.parse(answer);
  } catch {
    throw new AskFailure('UNEXPECTED_ANSWER', `${origin} returned an answer that is not JSON`);
  }
}

/** What is posted, nobody posts again but whoever did. */
const againIn = (seconds: number, isPosted: boolean) =>
  isPosted ? `Try again in ${seconds} s.` : `It is asked again by itself after ${seconds} s.`;

/** A service that has no time now says when it has. */
const BUSY: readonly number[] = [429, 503];

function refusalOf(body: unknown, { status, retryAfter, isPosted }: Refused, origin: string): AskFailure {
  try {
    const { error, code } = readRefusal(body, 'the refusal');
    const after = BUSY.includes(status) ? retryOf(body, retryAfter) : undefined;
    if (after === undefined) return new AskFailure(code, error);
    return new AskFailure(code, error, againIn(after, isPosted), after * 1_000);
  } catch {
    return new AskFailure('UPSTREAM_UNAVAILABLE', `${origin} returned status ${status}`);
  }
}

/** Whole seconds; undefined where a refusal says none. Not every one repeats in its details what its header says. */
function retryOf(refusal: unknown, retryAfter: string | null): number | undefined {
  const { details } = refusal as { readonly details?: { readonly retry_after?: unknown } | null };
  const seconds = Math.ceil(Number(details?.retry_after ?? retryAfter));
  return seconds > 0 ? Math.min(seconds, RETRY_SECONDS_MAX) : undefined;
}

interface Answered extends Pick<Response, 'ok' | 'status'> {
  readonly text: string;
  /** A header. */
  readonly retryAfter: string | null;
}

interface Refused extends Pick<Answered, 'status' | 'retryAfter'> {
  readonly isPosted: boolean;
}

/** A whole answer: it is a stranger's to its last byte. Throws AskFailure. */
async function fetchText(url: string, signal: AbortSignal, more: RequestInit): Promise<Answered> {
  const timeout = AbortSignal.timeout(TIMEOUT_MS);
  const { origin } = new URL(url, location.href);
  let begun: Response | undefined;
  try {
    begun = await fetch(url, { ...more, signal: AbortSignal.any([signal, timeout]), credentials: 'omit' });
    const bytes = await readUpTo(begun, ANSWER_BYTES_MAX);
    if (bytes.length > ANSWER_BYTES_MAX)
      throw new AskFailure('UNEXPECTED_ANSWER', `${origin} returned more than can be shown`);
    const { ok, status, headers } = begun;
    return { ok, status, text: new TextDecoder().decode(bytes), retryAfter: headers.get('retry-after') };
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof AskFailure) throw error;
    if (!navigator.onLine)
      throw new AskFailure('OFFLINE', 'this device is offline', 'It is asked again by itself.');
    throw new AskFailure(
      'UPSTREAM_UNAVAILABLE',
      begun && !timeout.aborted ? `${origin} broke its answer off` : `${origin} does not answer`,
      timeout.aborted
        ? `There was no whole answer within ${TIMEOUT_MS / 1_000} s.`
        : 'It is asked again by itself.',
    );
  }
}

interface Asking {
  /** Statuses whose answers are no refusals, beside 200. */
  readonly accepts?: readonly number[];
  /** What is posted, as JSON; without it, it is a GET. */
  readonly body?: unknown;
}

/** What a service answers, in its form. Throws AskFailure, Unreadable. */
export async function ask<T>(
  url: string,
  reader: Reader<T>,
  signal: AbortSignal,
  { accepts = [], body }: Asking = {},
): Promise<T> {
  const posted = {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  };
  const answered = await fetchText(url, signal, body === undefined ? {} : posted);
  const { ok, status, text: answer } = answered;
  const { origin } = new URL(url, location.href);
  if (!ok && !accepts.includes(status))
    throw refusalOf(
      answer.startsWith('{') ? parse(answer, origin) : null,
      { ...answered, isPosted: body !== undefined },
      origin,
    );
  return reader(parse(answer, origin), 'the answer');
}
