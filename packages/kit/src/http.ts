import type { IncomingMessage, ServerResponse } from 'node:http';
import fastifyCors from '@fastify/cors';
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import { AppError, describeMismatch, type ErrorBody, type ErrorCode, LIMITS } from '@skerry/protocol';
import {
  type FastifyBaseLogger,
  type FastifyError,
  type FastifyInstance,
  fastify,
  LogController,
  type RawServerDefault,
} from 'fastify';
import type { Logger } from './log.ts';
import { VERSION } from './version.ts';

export type HttpServer = FastifyInstance<
  RawServerDefault,
  IncomingMessage,
  ServerResponse,
  FastifyBaseLogger,
  TypeBoxTypeProvider
>;

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The route sees to it that a body that does not go on ends; it may take as long as it likes. */
    watchesItsBody?: boolean;
  }
}

export interface HttpServerOptions {
  readonly log: Logger;
  /** Methods that pages of any origin may use; none by default. */
  readonly corsMethods?: readonly string[];
  readonly bodyLimitBytes?: number;
  /** Knows failures of the service's own floor, such as a database that is away. */
  readonly translateError?: (error: unknown) => AppError | undefined;
}

/** Within this time a body is whole, unless its route watches it. */
const BODY_TIMEOUT_MS = 300_000;
const HEADERS_TIMEOUT_MS = 20_000;
const KEEP_ALIVE_MS = 65_000;

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

/**
 * An HTTP server whose every error is `{error, status:"error", code}`. What is not foreseen is logged and answered INTERNAL.
 */
export async function createHttpServer(options: HttpServerOptions): Promise<HttpServer> {
  const app = fastify({
    loggerInstance: options.log as FastifyBaseLogger,
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: options.bodyLimitBytes ?? LIMITS.jsonBodyBytes,
    keepAliveTimeout: KEEP_ALIVE_MS,
    http: { headersTimeout: HEADERS_TIMEOUT_MS },
    // Strict validation: nothing is dropped in silence; text of a query may become the number that it is.
    ajv: {
      customOptions: { removeAdditional: false, coerceTypes: true, useDefaults: true, allErrors: false },
    },
    forceCloseConnections: true,
    clientErrorHandler: (error, socket) => {
      const tooLarge = (error as NodeJS.ErrnoException).code === 'HPE_HEADER_OVERFLOW';
      const refusal = tooLarge
        ? new AppError('HEADERS_TOO_LARGE', 'the request head is too large')
        : new AppError('INVALID_PARAMETERS', 'the request is not HTTP/1.1 that this server reads');
      const body = JSON.stringify(errorBody(refusal));
      const reasonPhrase = tooLarge ? 'Request Header Fields Too Large' : 'Bad Request';
      if (socket.writable) {
        socket.end(
          `HTTP/1.1 ${refusal.httpStatus} ${reasonPhrase}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
        );
      }
    },
  }).withTypeProvider<TypeBoxTypeProvider>();
  // Schemas of responses document; they never drop a field on its way out.
  app.setSerializerCompiler(() => JSON.stringify);
  if (options.corsMethods) {
    await app.register(fastifyCors, {
      origin: '*',
      methods: [...options.corsMethods],
      exposedHeaders: '*',
      maxAge: 86_400,
    });
  }
  app.addHook('onRequest', async ({ raw, routeOptions }, reply) => {
    reply.header('server', `skerry/${VERSION}`);
    const hasBody =
      raw.headers['transfer-encoding'] !== undefined || Number(raw.headers['content-length']) > 0;
    if (!hasBody || routeOptions.config?.watchesItsBody) return;
    const timer = setTimeout(() => raw.destroy(), BODY_TIMEOUT_MS).unref();
    raw.once('end', () => clearTimeout(timer)).once('close', () => clearTimeout(timer));
  });
  app.setErrorHandler((error, request, reply) => {
    const known = options.translateError?.(error) ?? asAppError(error);
    if (known.kind === 'internal')
      request.log.error({ err: error, method: request.method, url: request.url }, 'a request failed');
    void reply.status(known.httpStatus).send(errorBody(known));
  });
  app.setNotFoundHandler((request, reply) => {
    const path = request.url.split('?', 1)[0]!.slice(0, 200);
    void reply
      .status(404)
      .send(errorBody(new AppError('ROUTE_NOT_FOUND', `there is no ${request.method} ${path}`)));
  });
  return app;
}

/** Listens, and says where: port 0 becomes the one the system chose. */
export async function listen(app: HttpServer, host: string, port: number): Promise<string> {
  await app.listen({ host, port });
  const address = app.server.address();
  const actualPort = typeof address === 'object' && address ? address.port : port;
  return `http://${host === '::' || host === '0.0.0.0' ? 'localhost' : host.includes(':') ? `[${host}]` : host}:${actualPort}`;
}
