import { type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { AppError, describeMismatch, type ErrorBody, type ErrorCode } from '@skerry/protocol/forms';
import type { FastifyError } from 'fastify';
import { VERSION } from '../daemon/version.ts';
import { requestIdOf } from './request-trace.ts';

/** From the last word to a client that cannot be understood to the end of its connection. */
const LINGER_MS = 2_000;

/** Fastify's own failures, in our words. */
const FRAMEWORK_CODES: Readonly<Record<string, ErrorCode>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: 'BODY_TOO_LARGE',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'UNSUPPORTED_MEDIA_TYPE',
  FST_ERR_CTP_EMPTY_JSON_BODY: 'INVALID_JSON',
  FST_ERR_CTP_INVALID_JSON_BODY: 'INVALID_JSON',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'INVALID_PARAMETERS',
  FST_ERR_MAX_PARAM_LENGTH: 'INVALID_PARAMETERS',
  FST_REQ_FILE_TOO_LARGE: 'FILE_TOO_LARGE',
  FST_FILES_LIMIT: 'INVALID_PARAMETERS',
  FST_FIELDS_LIMIT: 'INVALID_PARAMETERS',
  FST_PARTS_LIMIT: 'INVALID_PARAMETERS',
  FST_PROTO_VIOLATION: 'INVALID_PARAMETERS',
  FST_MP_PREMATURE_CLOSE: 'INVALID_PARAMETERS',
  FST_INVALID_MULTIPART_CONTENT_TYPE: 'UNSUPPORTED_MEDIA_TYPE',
  FST_ERR_BAD_URL: 'INVALID_PARAMETERS',
};

/** Seconds after which a caller whom we could not serve may try again. */
const RETRY_AFTER_SECONDS: Partial<Readonly<Record<ErrorCode, number>>> = {
  OVERLOADED: 1,
  DATABASE_UNAVAILABLE: 2,
  STORAGE_UNAVAILABLE: 5,
  STORAGE_FULL: 60,
  SHUTTING_DOWN: 5,
};

/** An error that knows better says it in its details. */
export function retryAfterOf({ code, details }: AppError): number | undefined {
  const said = (details as { retry_after?: unknown } | undefined)?.retry_after;
  return typeof said === 'number' ? said : RETRY_AFTER_SECONDS[code];
}

/** Any failure as one of ours; what we did not foresee is INTERNAL and says nothing to the caller. */
export function asAppError(error: unknown): AppError {
  if (error instanceof AppError) return error;
  const { validation, validationContext, code, message } = error as FastifyError & {
    validationContext?: string;
  };
  if (validation) {
    const where = validationContext === 'querystring' ? 'query' : (validationContext ?? 'request');
    return describeMismatch(where, 'INVALID_PARAMETERS', validation as never);
  }
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE')
    return new AppError(
      'UNSUPPORTED_MEDIA_TYPE',
      "the body must be JSON with the header content-type: application/json (curl -H 'content-type: application/json' -d '{...}')",
      { cause: error },
    );
  const known = code === undefined ? undefined : FRAMEWORK_CODES[code];
  if (known)
    return new AppError(
      known,
      message.replace(/^./, (first) => first.toLowerCase()),
      { cause: error },
    );
  return new AppError('INTERNAL', 'the node failed to answer this request', { cause: error });
}

export function errorBody(error: AppError): ErrorBody {
  const { message, code, details } = error;
  return { error: message, status: 'error', code, ...(details === undefined ? {} : { details }) };
}

/** A path that cannot be read belongs to no route: no hook and no handler of ours sees it. */
export function refusePath(error: FastifyError, requestId: string, response: ServerResponse): AppError {
  const refusal = asAppError(error);
  response.writeHead(refusal.httpStatus, {
    'content-type': 'application/json; charset=utf-8',
    server: `skerry/${VERSION}`,
    'x-request-id': requestId,
  });
  response.end(JSON.stringify(errorBody(refusal)));
  return refusal;
}

/** A refusal written straight to the socket: the request could not even be read. */
export function refuseSocket(error: NodeJS.ErrnoException, socket: Socket): AppError | undefined {
  if (!socket.writable || error.code === 'ECONNRESET') return undefined;
  const refusal =
    error.code === 'HPE_HEADER_OVERFLOW'
      ? new AppError('HEADERS_TOO_LARGE', 'the request headers are too large')
      : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? new AppError('REQUEST_TIMEOUT', 'the request did not arrive in time')
        : new AppError('INVALID_PARAMETERS', 'the request is not valid HTTP/1.1');
  endWith(refusal, socket);
  return refusal;
}

/** The last words on a connection for which there is no response to write to. */
export function endWith(refusal: AppError, socket: Socket): void {
  const body = JSON.stringify(errorBody(refusal));
  const head = [
    `HTTP/1.1 ${refusal.httpStatus} ${STATUS_CODES[refusal.httpStatus]}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    `X-Request-Id: ${requestIdOf({ headers: {} })}`,
    'Connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
  // A client that keeps its side open would keep the connection. Until then it can read what was written.
  setTimeout(() => socket.destroy(), LINGER_MS).unref();
}
