import { fields, maybe, type Reader, text } from '../pure/read.ts';
import { AskFailure } from './failure.ts';

const TIMEOUT_MS = 20_000;
/** A larger answer is not read: it would freeze the page. */
const ANSWER_CHARS_MAX = 32 * 1024 ** 2;

const readRefusal = fields({ error: text, code: text });
const readDetails = fields({ details: maybe(fields({ retry_after: maybe((value) => Number(value)) })) });

function parse(answer: string, origin: string): unknown {
  try {
    return JSON.parse(answer);
  } catch {
    throw new AskFailure('UNEXPECTED_ANSWER', `${origin} returned an answer that is not JSON`);
  }
}

function refusalOf(body: unknown, status: number, origin: string): AskFailure {
  try {
    const { error, code } = readRefusal(body, 'the refusal');
    const after = status === 429 ? readDetails(body, 'the refusal').details?.retry_after : null;
    return new AskFailure(code, error, after ? `It is asked again by itself in ${after} s.` : undefined);
  } catch {
    return new AskFailure('UPSTREAM_UNAVAILABLE', `${origin} returned status ${status}`);
  }
}

async function fetchText(url: string, signal: AbortSignal, more: RequestInit): Promise<Response> {
  const timeout = AbortSignal.timeout(TIMEOUT_MS);
  try {
    return await fetch(url, { ...more, signal: AbortSignal.any([signal, timeout]), credentials: 'omit' });
  } catch {
    signal.throwIfAborted();
    const { origin } = new URL(url, location.href);
    throw new AskFailure(
      navigator.onLine ? 'UPSTREAM_UNAVAILABLE' : 'OFFLINE',
      navigator.onLine ? `${origin} does not answer` : 'this device is offline',
      timeout.aborted
        ? `There was no answer within ${TIMEOUT_MS / 1_000} s.`
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
  const response = await fetchText(url, signal, body === undefined ? {} : posted);
  const { origin } = new URL(url, location.href);
  const answer = await response.text();
  if (answer.length > ANSWER_CHARS_MAX)
    throw new AskFailure('UNEXPECTED_ANSWER', `${origin} returned more than can be shown`);
  if (!response.ok && !accepts.includes(response.status))
    throw refusalOf(answer.startsWith('{') ? parse(answer, origin) : null, response.status, origin);
  return reader(parse(answer, origin), 'the answer');
}
