import type { IncomingMessage, ServerResponse } from 'node:http';
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import { statusOf } from '@skerry/protocol/api/operation';
import { AppError, checkJsonDepth, LIMITS } from '@skerry/protocol/forms';
import type { FastifyBaseLogger, FastifyInstance, FastifyRequest, RawServerDefault } from 'fastify';
import type { Logger } from '../daemon/log.ts';
import { VERSION } from '../daemon/version.ts';
import { shareBodies } from '../limits/bodies.ts';
import type { ClientOptions } from '../limits/client.ts';
import { shareConnections } from '../limits/connections.ts';
import { checkRateClass, createRateLimiter, type RateLimitOptions } from '../limits/rate-limit.ts';
import type { ShareLimits } from '../limits/shares.ts';
import { Framing } from './framing.ts';
import { answerOddRequests, checkHost } from './http-rules.ts';
import { Methods } from './methods.ts';
import { asAppError, errorBody, refuseResponse, refuseSocket, retryAfterOf } from './refusals.ts';
import { createRequestLog } from './request-log.ts';
import { type HttpObserver, noteAnswer, requestIdOf, SlowRequests, traceAnswer } from './request-trace.ts';
import { takeTurns } from './turnstile.ts';
import { endUntaken } from './untaken.ts';
import { endUnwanted, leaveUnwanted } from './unwanted.ts';
import { asksForOneOf, routeUpgrades } from './upgrade.ts';
import { VALIDATION } from './validators.ts';

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
  /** With it every route must say its `config.rateClass`. */
  readonly limits?: RateLimitOptions;
  /** Of bodies that are read whole, in bytes; as many as a core node needs where left out. */
  readonly bodies?: ShareLimits;
  readonly observer?: HttpObserver | undefined;
  /** Paths that are answered before everything that waits for its turn. */
  readonly urgentPaths?: readonly string[] | undefined;
  /** How long requests that run may go on after `close`. */
  readonly drainMs?: number;
  /** How long the reader of an answer may take nothing of it; our own have longer. */
  readonly takingMs?: number;
  /** Paths of routes that are WebSockets (upgrade.ts). */
  readonly socketPaths?: readonly string[];
}

/** Within this time a body is whole, unless its route watches it. */
const BODY_TIMEOUT_MS = 300_000;
const HEADERS_TIMEOUT_MS = 20_000;
const KEEP_ALIVE_MS = 65_000;
/** Shorter than the deadline of the whole stop (service.ts). */
const DRAIN_MS = 10_000;
/** One part of a path as it is sent: percent-encoded, a name of 256 characters may take 3 KB. */
const PATH_PART_CHARS_MAX = 4_096;

/** Who has no share of connections where no setting says more. */
const LOOPBACK: ClientOptions = { exempt: ['127.0.0.0/8', '::1'], trustedProxies: [] };

/** Whoever sent the body broke off, or went on with what is no HTTP: nothing failed here, and no server behind this one. */
const isBrokenOff = (error: unknown, { raw }: FastifyRequest): boolean =>
  (error as NodeJS.ErrnoException).code === 'ECONNRESET' && raw.destroyed && !raw.complete;

function knownOf(
  error: unknown,
  request: FastifyRequest,
  translate: HttpServerOptions['translateError'],
): AppError {
  if (isBrokenOff(error, request))
    return new AppError('INVALID_PARAMETERS', 'the body broke off before all of it had come');
  return translate?.(error) ?? asAppError(error, request.routeOptions.config.operation?.body);
}

/** Every failure in our form; a fault of ours is logged, and its answer carries only the id to find it by. */
function answerErrors(app: HttpServer, { translateError, observer }: HttpServerOptions): void {
  const methods = new Methods();
  app.addHook('onRoute', (route) => methods.note(route));
  app.setErrorHandler((error, request, reply) => {
    const known = knownOf(error, request, translateError);
    // Whoever asked is gone, and what was done for it ended with that: nothing failed.
    const isGone = (error as Error).name === 'AbortError' && request.raw.socket.destroyed;
    if (!isGone) observer?.refused(known.code);
    const body = errorBody(known);
    if (known.kind === 'internal' && !isGone) {
      request.log.error({ err: error, method: request.method, url: request.url }, 'a request failed');
      body.details = { request_id: request.id };
    }
    const retryAfter = retryAfterOf(known);
    if (retryAfter !== undefined) reply.header('retry-after', String(retryAfter));
    void reply.status(statusOf(known.code, request.routeOptions.config.operation)).send(body);
  });
  app.setNotFoundHandler((request, reply) => {
    const path = request.url.split('?', 1)[0]!;
    const allowed = methods.of(path);
    if (allowed.length > 0) reply.header('allow', allowed.join(', '));
    if (allowed.length > 0 && request.method === 'OPTIONS') {
      void reply.status(204).send();
      return;
    }
    const shown = path.slice(0, 200);
    const refusal =
      allowed.length === 0
        ? new AppError('ROUTE_NOT_FOUND', `there is no ${request.method} ${shown}`)
        : new AppError('METHOD_NOT_ALLOWED', `${shown} takes ${allowed.join(', ')}, not ${request.method}`);
    observer?.refused(refusal.code);
    void reply.status(refusal.httpStatus).send(errorBody(refusal));
  });
}

/**
 * Closing lets running requests finish: the listener closes, idle connections end, busy ones end after their answer, which
 * says so. What still runs at the deadline is cut off.
 */
function finishOnClose(app: HttpServer, log: Logger, drainMs: number): void {
  let deadline: NodeJS.Timeout | undefined;
  app.addHook('preClose', async () => {
    deadline = setTimeout(() => {
      log.warn({ drain_ms: drainMs }, 'closing requests that did not finish in time');
      app.server.closeAllConnections();
    }, drainMs);
  });
  app.addHook('onSend', (_request, reply, _payload, done) => {
    if (deadline) reply.header('connection', 'close');
    done();
  });
  app.addHook('onResponse', (_request, _reply, done) => {
    if (deadline) setImmediate(() => app.server.closeIdleConnections());
    done();
  });
  app.addHook('onClose', async () => clearTimeout(deadline));
}

/** Told once: it is a setting that is missing, not an event. */
function warnOfRelays(log: Logger): (peer: string) => void {
  let isTold = false;
  return (peer) => {
    if (isTold) return;
    isTold = true;
    log.warn(
      { peer },
      'requests come through an untrusted proxy: all of them count as one client (see the setting TRUSTED_PROXIES)',
    );
  };
}

function limitRates(app: HttpServer, log: Logger, limits: RateLimitOptions): void {
  const limiter = createRateLimiter(limits, { onRelay: warnOfRelays(log) });
  app.addHook('onRoute', checkRateClass);
  app.addHook('onRequest', (request, reply, done) => {
    limiter.check(request, reply);
    done();
  });
}

/** A body that is not whole in time ends with its connection, unless the route sees to that itself; of one that nobody wants little is read. */
function endUnfinishedBodies(app: HttpServer): void {
  app.addHook('onResponse', endUnwanted);
  app.addHook('onSend', leaveUnwanted);
  app.addHook('onRequest', ({ raw, routeOptions }, _reply, done) => {
    const hasBody =
      raw.headers['transfer-encoding'] !== undefined || Number(raw.headers['content-length']) > 0;
    if (hasBody && !routeOptions.config?.watchesItsBody) {
      const timer = setTimeout(() => raw.destroy(), BODY_TIMEOUT_MS).unref();
      raw.once('end', () => clearTimeout(timer)).once('close', () => clearTimeout(timer));
    }
    done();
  });
}

/** What Fetch calls a preflight. */
const isPreflight = ({ headers }: FastifyRequest) =>
  headers.origin !== undefined && headers['access-control-request-method'] !== undefined;

/** On what is answered where no hook runs: pages that may ask may also read why they are refused. */
const ANY_ORIGIN = { 'access-control-allow-origin': '*', 'access-control-expose-headers': '*' };

/** Refuses where no hook runs. */
function refuserOf({ corsMethods, observer }: HttpServerOptions) {
  const headers = corsMethods ? ANY_ORIGIN : undefined;
  return (refusal: AppError, requestId: string, response: ServerResponse) => {
    refuseResponse(refusal, requestId, response, headers);
    observer?.refused(refusal.code);
  };
}

/** Lets pages of any origin use these methods. Any other question for OPTIONS goes the way of what has no route. */
async function answerOrigins(app: HttpServer, methods: readonly string[]): Promise<void> {
  await app.register(import('@fastify/cors'), {
    ...{ origin: '*', methods: [...methods], exposedHeaders: '*', maxAge: 86_400 },
    // It would refuse what is no preflight in words of its own.
    ...{ strictPreflight: false, preflightContinue: true },
  });
  app.addHook('onRequest', (request, reply, done) => {
    if (request.method !== 'OPTIONS') done();
    else if (isPreflight(request)) void reply.status(204).header('content-length', '0').send();
    else reply.callNotFound();
  });
}

/** No JSON is deeper than what walks it can go, whatever its route makes of it. */
function boundJson(app: HttpServer): void {
  const parse = app.getDefaultJsonParser('error', 'error');
  app.addContentTypeParser<string>('application/json', { parseAs: 'string' }, (request, body, done) => {
    checkJsonDepth(body);
    void parse(request, body, done);
  });
}

function traceAnswers(app: HttpServer, log: Logger, observer: HttpObserver | undefined): void {
  const slow = new SlowRequests(log);
  app.addHook('onSend', (_request, reply, _payload, done) => {
    noteAnswer(reply);
    done();
  });
  app.addHook('onResponse', (request, reply, done) => {
    traceAnswer(request, reply, slow, observer);
    done();
  });
}

/**
 * An HTTP server whose every error is `{error, status:"error", code}`. What is not foreseen is logged and answered INTERNAL.
 * Every answer carries `x-request-id`, which every line in the log of that request has as `request_id`.
 */
export async function createHttpServer(options: HttpServerOptions): Promise<HttpServer> {
  const { log, limits, observer } = options;
  // Loaded here, so that a command or a worker that takes something else of this package does not load it too.
  const { fastify, LogController } = await import('fastify');
  const framing = new Framing();
  const refuse = refuserOf(options);
  const app = fastify({
    loggerInstance: log as FastifyBaseLogger,
    childLoggerFactory: (_log, bindings) => createRequestLog(log, bindings),
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'request_id' }),
    routerOptions: { maxParamLength: PATH_PART_CHARS_MAX },
    genReqId: requestIdOf,
    bodyLimit: options.bodyLimitBytes ?? LIMITS.jsonBodyBytes,
    keepAliveTimeout: KEEP_ALIVE_MS,
    http: {
      headersTimeout: HEADERS_TIMEOUT_MS,
      requireHostHeader: false,
      ...(options.socketPaths ? { shouldUpgradeCallback: asksForOneOf(options.socketPaths, framing) } : {}),
    },
    ajv: VALIDATION,
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    // A path that cannot be read belongs to no route.
    frameworkErrors: (error, request, reply) => refuse(asAppError(error), request.id, reply.raw),
    clientErrorHandler: (error, socket) => {
      const refusal = framing.endsAnswered(socket) ? undefined : refuseSocket(error, socket);
      if (refusal) observer?.refused(refusal.code);
    },
  }).withTypeProvider<TypeBoxTypeProvider>();
  // Schemas of responses document; they never drop a field on its way out.
  app.setSerializerCompiler(() => JSON.stringify);
  // Hooks that wait for nothing are called back: each promise is another turn of every request, and garbage.
  app.addHook('onRequest', (request, reply, done) => {
    reply.headers({ server: `skerry/${VERSION}`, 'x-request-id': request.id });
    checkHost(request.raw);
    done();
  });
  boundJson(app);
  answerOddRequests(app.server, framing, ({ code }) => observer?.refused(code));
  if (options.corsMethods) await answerOrigins(app, options.corsMethods);
  if (limits) limitRates(app, log, limits);
  const clients = (limits?.isEnabled ?? true) ? (limits ?? LOOPBACK) : undefined;
  if (clients) {
    shareConnections(app.server, clients, { onLetGo: () => observer?.letGo('connection') });
    shareBodies(app, clients, { limits: options.bodies, onLetGo: () => observer?.letGo('body') });
  }
  takeTurns(app.server, {
    ...{ urgentPaths: new Set(options.urgentPaths), clients },
    refuse: (refusal, request, response) => refuse(refusal, requestIdOf(request), response),
  });
  framing.watch(app.server, ({ code }) => observer?.refused(code));
  if (options.socketPaths) routeUpgrades(app.server);
  endUnfinishedBodies(app);
  app.addHook('onSend', endUntaken(limits ?? LOOPBACK, options.takingMs));
  traceAnswers(app, log, observer);
  answerErrors(app, options);
  finishOnClose(app, log, options.drainMs ?? DRAIN_MS);
  return app;
}
