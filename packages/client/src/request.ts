import { AppError, fieldsOf, isErrorCode } from '@skerry/protocol/forms';

export interface RequestOptions {
  readonly method?: string;
  readonly body?: string | FormData | Blob | Uint8Array<ArrayBuffer>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs?: number;
  /** Knows answers among the statuses that are no success. */
  readonly isAnswer?: (response: Response) => boolean;
}

const DEFAULT_TIMEOUT_MS = 30_000;

function causeOf(error: unknown): string {
  const { cause, message } = error as Error & { cause?: { code?: string; message?: string } };
  return cause?.code ?? cause?.message ?? message;
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

/** A request whose failure is always an AppError: the node's own code, or UPSTREAM_UNAVAILABLE where no node answered. */
export async function request(url: string, options: RequestOptions = {}): Promise<Response> {
  const { method = 'GET', body, headers = {}, signal, timeoutMs = DEFAULT_TIMEOUT_MS } = options;
  const timeout = AbortSignal.timeout(timeoutMs);
  let response: Response;
  try {
    response = await fetch(url, {
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
    throw readRefusal(await response.text().catch(() => ''), { status: response.status, url });
  return response;
}
