import { AppError, fieldsOf, isErrorCode } from '@skerry/protocol/forms';
import { readText } from './reads/read-body.ts';

export { TEXT_BYTES_MAX } from './reads/read-body.ts';

/** What is read of an answer that is text. */
export interface TextAnswer extends Pick<Response, 'ok' | 'status' | 'url' | 'text'> {
  readonly headers: Pick<Headers, 'get'>;
}

export interface RequestOptions {
  readonly method?: string;
  readonly body?: string | FormData | Blob | Uint8Array<ArrayBuffer>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs?: number;
  /** Knows answers among the statuses that are no success. */
  readonly isAnswer?: (response: Omit<TextAnswer, 'text'>) => boolean;
}

/** A request as it is sent. */
export interface Sent extends Required<Pick<RequestOptions, 'method' | 'headers'>> {
  readonly body?: NonNullable<RequestOptions['body']>;
  /** Ends it, also while its answer is read. */
  readonly signal: AbortSignal;
}

/** Sends a request, redirects followed; rejects where nobody answers. */
export type AskText = (url: string, sent: Sent) => Promise<TextAnswer>;

const askByFetch = (url: string, sent: Sent): Promise<Response> => fetch(url, sent);
let askText: AskText = askByFetch;

/**
 * From now on requests of this process whose answers are text go by `ask`. For programs that start for one request: Node takes
 * longer to load `fetch` than to start.
 */
export function askTextBy(ask: AskText): void {
  askText = ask;
}

const DEFAULT_TIMEOUT_MS = 30_000;

function causeOf(error: unknown): string {
  const { cause, code, message } = error as Error & {
    code?: string;
    cause?: { code?: string; message?: string };
  };
  return cause?.code ?? cause?.message ?? code ?? message;
}

/** What a service answered, when it was not a success, as our error. */
export function readRefusal(text: string, { status, url }: Pick<Response, 'status' | 'url'>): AppError {
  try {
    const { code, error, details } = fieldsOf(JSON.parse(text));
    if (isErrorCode(code)) return new AppError(code, typeof error === 'string' ? error : code, { details });
  } catch {
    // Not ours: some proxy between, or another kind of server.
  }
  return new AppError('UPSTREAM_UNAVAILABLE', `${url} returned ${status} with an unknown reason`);
}

async function requestBy<Answer extends TextAnswer>(
  ask: (url: string, sent: Sent) => Promise<Answer>,
  url: string,
  options: RequestOptions,
): Promise<Answer> {
  const { method = 'GET', body, headers = {}, signal, timeoutMs = DEFAULT_TIMEOUT_MS } = options;
  const timeout = AbortSignal.timeout(timeoutMs);
  let response: Answer;
  try {
    response = await ask(url, {
      method,
      headers: { ...(typeof body === 'string' ? { 'content-type': 'application/json' } : {}), ...headers },
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
      ...(body === undefined ? {} : { body }),
    });
  } catch (error) {
    signal?.throwIfAborted();
    const why = timeout.aborted ? `no answer within ${timeoutMs} ms` : causeOf(error);
    throw new AppError('UPSTREAM_UNAVAILABLE', `${new URL(url).origin} does not answer (${why})`, {
      cause: error,
    });
  }
  if (!response.ok && !options.isAnswer?.(response))
    throw readRefusal(await readText(response).catch(() => ''), { status: response.status, url });
  return response;
}

/** A request whose failure is always an AppError: the node's own code, or UPSTREAM_UNAVAILABLE where no node answered. */
export const request = (url: string, options: RequestOptions = {}): Promise<Response> =>
  requestBy(askByFetch, url, options);

/** The same for an answer that is text (askTextBy). */
export const requestText = (url: string, options: RequestOptions): Promise<TextAnswer> =>
  requestBy(askText, url, options);
