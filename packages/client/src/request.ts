import { AppError, type ErrorCode, fieldsOf, isErrorCode } from '@skerry/protocol/forms';
import { leavesOpen } from './lost.ts';
import { isTimeLimit } from './pause.ts';
import { causeOf } from './reads/cause.ts';
import { lateError, readText } from './reads/read-body.ts';

export { TEXT_BYTES_MAX } from './reads/read-body.ts';

/** What is read of an answer that is read whole: text, or what a program made. */
export interface TextAnswer extends Pick<Response, 'ok' | 'status' | 'url' | 'text' | 'arrayBuffer'> {
  readonly headers: Pick<Headers, 'get'>;
}

export interface RequestOptions {
  readonly method?: string;
  readonly body?: string | FormData | Blob | Uint8Array<ArrayBuffer>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
  /** Until all of the answer is there; `Infinity` for a stream that goes on. */
  readonly timeoutMs?: number;
  /** Knows answers among the statuses that are no success. */
  readonly isAnswer?: (response: Omit<TextAnswer, 'text' | 'arrayBuffer'>) => boolean;
  /** A question whose answer the caller knows by its hash: whoever has it may give it, where the service sends there by `https`. */
  readonly isKnownByHash?: boolean | undefined;
}

/** A request as it is sent. */
export interface Sent extends Required<Pick<RequestOptions, 'method' | 'headers'>> {
  /** A redirect is the answer; only where a browser hides what it is, it is followed. */
  readonly redirect: 'follow' | 'manual';
  readonly body?: NonNullable<RequestOptions['body']>;
  /** Ends it, also while its answer is read. */
  readonly signal: AbortSignal;
}

/** Sends a request; rejects where nobody answers. */
export type AskText = (url: string, sent: Sent) => Promise<TextAnswer>;

const askByFetch = (url: string, sent: Sent): Promise<Response> => fetch(url, sent);
let askText: AskText = askByFetch;

/**
 * From now on requests of this process whose answers are read whole go by `ask`. For programs that start for one request, and for those
 * that wait long for an answer: Node takes longer to load `fetch` than to start, and its `fetch` waits five minutes at most.
 */
export function askTextBy(ask: AskText): void {
  askText = ask;
}

const DEFAULT_TIMEOUT_MS = 30_000;

/**
 * What whoever asks says in the details of their own errors: a hint for their user, that nobody answered in time, and the message of
 * theirs that may have arrived (lost.ts). A service has no say in it.
 */
function withoutOwn(code: ErrorCode, details: unknown): unknown {
  if (typeof details !== 'object' || details === null || Array.isArray(details)) return details;
  const { hint: _, late: __, ...others } = details as { hint?: unknown; late?: unknown; item_hash?: unknown };
  if (leavesOpen(code)) delete others.item_hash;
  return others;
}

/** What a service answered, when it was not a success, as our error. */
export function readRefusal(text: string, { status, url }: Pick<Response, 'status' | 'url'>): AppError {
  try {
    const { code, error, details } = fieldsOf(JSON.parse(text));
    if (isErrorCode(code))
      return new AppError(code, typeof error === 'string' ? error : code, {
        details: withoutOwn(code, details),
      });
  } catch {
    // Not ours: some proxy between, or another kind of server.
  }
  return new AppError('UPSTREAM_UNAVAILABLE', `${url} returned ${status} with an unknown reason`);
}

const REDIRECTS_MAX = 3;
/** By which a request is to be repeated elsewhere as it is. Of the older two, what proxies mean that lead from http to https. */
const REPEATED_ELSEWHERE: ReadonlySet<number> = new Set([301, 302, 307, 308]);

/** Whether a request may be sent there as well: to the same service, or to it by https. */
function isSameService(from: string, to: URL): boolean {
  const { origin, protocol, hostname } = new URL(from);
  const isSecured = protocol === 'http:' && to.protocol === 'https:' && to.port === '';
  return to.origin === origin || (isSecured && to.hostname === hostname);
}

interface Redirecting extends Pick<TextAnswer, 'status' | 'headers'>, Partial<Pick<Response, 'type'>> {}

/**
 * Whether another service may be asked for bytes that are known by their hash: by https, which what answers to everybody within a network
 * does not speak, or on the same host, as where a network on one machine has its files in an object store.
 */
function mayGive(from: string, to: URL): boolean {
  const { protocol, hostname } = new URL(from);
  return (
    to.protocol === 'https:' || (protocol === 'http:' && to.protocol === 'http:' && to.hostname === hostname)
  );
}

/** Where a redirect leads that may be followed; undefined where the answer is none. Throws UNEXPECTED_ANSWER where it leads to others. */
function redirectOf(
  url: string,
  { status, headers, type }: Redirecting,
  isKnownByHash: boolean,
): string | undefined {
  // A browser does not tell where it would lead.
  const isHidden = type === 'opaqueredirect';
  const location = headers.get('location');
  if (!isHidden && (!location || !REPEATED_ELSEWHERE.has(status))) return undefined;
  const to = URL.parse(location ?? '//', url);
  if (to && (isSameService(url, to) || (isKnownByHash && mayGive(url, to)))) return to.href;
  const { origin } = new URL(url);
  const where = to ? ` to ${to.origin}` : '';
  const allowed = isKnownByHash
    ? 'a file is fetched from there, or elsewhere by https'
    : 'what is asked and sent goes to the address that was named, and to no other';
  throw new AppError('UNEXPECTED_ANSWER', `${origin} redirects${where}: ${allowed}`);
}

async function requestBy<Answer extends TextAnswer & Partial<Pick<Response, 'type' | 'body'>>>(
  ask: (url: string, sent: Sent) => Promise<Answer>,
  url: string,
  options: RequestOptions,
): Promise<Answer> {
  const {
    method = 'GET',
    body,
    headers = {},
    signal,
    timeoutMs = DEFAULT_TIMEOUT_MS,
    isKnownByHash = false,
  } = options;
  const isQuestion = method === 'GET' || method === 'HEAD';
  const timeout = timeoutMs === Infinity ? undefined : AbortSignal.timeout(timeoutMs);
  const limits = [signal, timeout].filter((one) => one !== undefined);
  const sent: Sent = {
    method,
    redirect: 'manual',
    headers: { ...(typeof body === 'string' ? { 'content-type': 'application/json' } : {}), ...headers },
    signal: limits.length === 1 ? limits[0]! : AbortSignal.any(limits),
    ...(body === undefined ? {} : { body }),
  };
  const askAt = async (place: string, redirect: Sent['redirect'] = 'manual'): Promise<Answer> => {
    try {
      return await ask(place, { ...sent, redirect });
    } catch (error) {
      const messageOf = (why: string) => `${new URL(place).origin} does not answer (${why})`;
      if (isTimeLimit(signal)) throw lateError(messageOf('no answer in the time that it was given'));
      signal?.throwIfAborted();
      if (timeout?.aborted) throw lateError(messageOf(`no answer within ${timeoutMs} ms`));
      throw new AppError('UPSTREAM_UNAVAILABLE', messageOf(causeOf(error)), { cause: error });
    }
  };
  let response = await askAt(url);
  // A browser guards by itself what a page may ask for.
  if (isQuestion && response.type === 'opaqueredirect') response = await askAt(url, 'follow');
  for (let hops = 0, at = url; hops < REDIRECTS_MAX; hops++) {
    // A program may answer what it likes; a file is where the answer says.
    const isOver = !isKnownByHash && options.isAnswer?.(response);
    const next = isOver ? undefined : redirectOf(at, response, isQuestion && isKnownByHash);
    if (next === undefined) break;
    await response.body?.cancel().catch(() => {});
    response = await askAt(next);
    at = next;
  }
  if (!response.ok && !options.isAnswer?.(response))
    throw readRefusal(await readText(response).catch(() => ''), { status: response.status, url });
  return response;
}

/** A request whose failure is always an AppError: the node's own code, or UPSTREAM_UNAVAILABLE where no node answered. */
export const request = (url: string, options: RequestOptions = {}): Promise<Response> =>
  requestBy(askByFetch, url, options);

/** The same for an answer that is read whole (askTextBy). */
export const requestText = (url: string, options: RequestOptions): Promise<TextAnswer> =>
  requestBy(askText, url, options);
