import { type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Body } from '@skerry/protocol/api/operation';
import { AppError, describeMismatch, type ErrorBody, type ErrorCode } from '@skerry/protocol/forms';
import type { FastifyError } from 'fastify';
import { VERSION } from '../daemon/version.ts';
import { requestIdOf } from './request-trace.ts';

/** From the last word to a client that cannot be understood to the end of its connection. */
const LINGER_MS = 2_000;

/** Fastify's own failures, in our words. */
const FRAMEWORK_CODES: Readonly<Record<string, ErrorCode>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: 'BODY_TOO_LARGE',
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
  FST_ERR_BAD_URL: 'INVALID_PARAMETERS',
};

const WRONG_TYPE: ReadonlySet<string> = new Set([
  'FST_ERR_CTP_INVALID_MEDIA_TYPE',
  'FST_INVALID_MULTIPART_CONTENT_TYPE',
]);
const JSON_TYPE = 'application/json';
const FORM_TYPE = 'multipart/form-data';

/** What Ajv says of one rule that is not kept, with the value. */
type Mismatch = Parameters<typeof describeMismatch>[2][number] & { readonly data?: unknown };

/** Seconds after which a caller whom we could not serve may try again. */
const RETRY_AFTER_SECONDS: Partial<Readonly<Record<ErrorCode, number>>> = {
  RATE_LIMITED: 1,
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

/** The content types of a body that a route takes. */
function typesOf(body: Body): readonly string[] {
  if (body.kind === 'form') return [FORM_TYPE];
  if (body.kind === 'stream') return Object.keys(body.content);
  return [body.kind === 'bytes' ? body.contentType : JSON_TYPE];
}

const EXAMPLES: Readonly<Record<string, string>> = {
  [JSON_TYPE]: ` (curl -H 'content-type: ${JSON_TYPE}' -d '{...}')`,
  [FORM_TYPE]: ' (curl -F file=@FILE)',
};

function wrongTypeOf(body: Body | undefined, cause: unknown): AppError {
  const types = body ? typesOf(body) : [JSON_TYPE];
  const example = EXAMPLES[types[0]!] ?? '';
  return new AppError(
    'UNSUPPORTED_MEDIA_TYPE',
    `the body must be ${types.join(' or ')}, with the header content-type: ${types[0]}${example}`,
    { cause },
  );
}

/** What parses a query makes a list of a parameter that is given again. */
function tellRepeated(error: Mismatch): Mismatch {
  if (error.keyword !== 'type' || !Array.isArray(error.data)) return error;
  const message = `is given ${error.data.length} times; give it once, and separate values by commas where it takes several`;
  return { ...error, message };
}

/**
 * Any failure as one of ours; what we did not foresee is INTERNAL and says nothing to the caller.
 * @param body that the route takes
 */
export function asAppError(error: unknown, body?: Body): AppError {
  if (error instanceof AppError) return error;
  const { validation, validationContext, code, message } = error as FastifyError & {
    validationContext?: string;
  };
  if (validation) {
    const errors = validation as unknown as readonly Mismatch[];
    return validationContext === 'querystring'
      ? describeMismatch('query', 'INVALID_PARAMETERS', errors.map(tellRepeated))
      : describeMismatch(validationContext ?? 'request', 'INVALID_PARAMETERS', errors);
  }
  if (code !== undefined && WRONG_TYPE.has(code)) return wrongTypeOf(body, error);
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

/** A refusal of what no hook and no handler of ours sees. @param headers what hooks would have added */
export function refuseResponse(
  refusal: AppError,
  requestId: string,
  response: ServerResponse,
  headers: Readonly<Record<string, string>> = {},
): void {
  const body = JSON.stringify(errorBody(refusal));
  const retryAfter = retryAfterOf(refusal);
  response.writeHead(refusal.httpStatus, {
    ...headers,
    ...(retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) }),
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(body),
    server: `skerry/${VERSION}`,
    'x-request-id': requestId,
  });
  response.end(body);
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
  socket.write(`${head.join('\r\n')}\r\n\r\n${body}`);
  endSoon(socket);
}

/** A client that keeps its side open would keep the connection. Until then it can read what was written. */
export function endSoon(socket: Socket): void {
  socket.end();
  setTimeout(() => socket.destroy(), LINGER_MS).unref();
}
