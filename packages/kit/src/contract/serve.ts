import type {
  Api,
  Body,
  BodyOf,
  Content,
  JsonOf,
  Operation,
  ParamsOf,
  QueryOf,
} from '@skerry/protocol/api/operation';
import { createParser, scanJsonObject } from '@skerry/protocol/forms';
import type {
  FastifyContextConfig,
  FastifyReply,
  FastifyRequest,
  preParsingAsyncHookHandler,
  preParsingHookHandler,
  RouteOptions,
} from 'fastify';
import { whyCoded } from '../http/http-rules.ts';
import type { HttpServer } from '../http/server.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** What the route was registered from. */
    operation?: Operation;
  }
}

/** An answer with its status and header fields. */
class Answered<Status extends number, Body> {
  readonly status: Status;
  readonly body: Body;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: Status, body: Body, headers: Readonly<Record<string, string>>) {
    this.status = status;
    this.body = body;
    this.headers = headers;
  }
}

/** For an answer that is not a plain 200 in JSON. */
export const answer = <const Status extends number, Body>(
  status: Status,
  body: Body,
  headers: Readonly<Record<string, string>> = {},
) => new Answered(status, body, headers);

/** What is sent may be somebody's who must not change it. */
type Frozen<T> = T extends readonly (infer Member)[]
  ? readonly Frozen<Member>[]
  : T extends object
    ? { readonly [K in keyof T]: Frozen<T[K]> }
    : T;

type Sendable<A> = A extends Content ? Frozen<JsonOf<A>> | string | Uint8Array : Frozen<JsonOf<A>>;

type AnsweredOf<A> = { [S in keyof A]: Answered<S & number, Sendable<A[S]>> }[keyof A];

/** What a handler gives back: the answer of status 200, another one (`answer`), or the reply that it has sent itself. */
export type Answer<O extends Operation> =
  | (O['answers'] extends { readonly 200: infer A } ? Sendable<A> : never)
  | AnsweredOf<O['answers']>
  | FastifyReply;

export interface Request<O extends Operation> {
  readonly params: ParamsOf<O>;
  /** Checked, each value of its type, with the defaults. */
  readonly query: QueryOf<O>;
  readonly body: BodyOf<O>;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
}

export type Handler<O extends Operation> = (request: Request<O>) => Answer<O> | Promise<Answer<O>>;
export type Handlers<A extends Api> = { readonly [Id in keyof A]: Handler<A[Id]> };

/** What is the server's own affair and no part of the contract. */
export interface ServeOptions {
  readonly config?: Omit<FastifyContextConfig, 'rateClass' | 'operation' | 'url' | 'method'>;
  /** Before anything is read of the body. */
  readonly onRequest?: (request: FastifyRequest, reply: FastifyReply) => Promise<void>;
  readonly preParsing?: preParsingAsyncHookHandler;
  /** Before the query is checked. */
  readonly preValidation?: (request: FastifyRequest, reply: FastifyReply) => Promise<void>;
  /** Registers what reads the body of a form or a stream; the operation takes no other content types then. */
  readonly parsers?: (scope: HttpServer) => Promise<void>;
}

const JSON_TYPE = 'application/json';
/** Who sends text often says another type of it, or none. */
const TEXT_TYPES = [JSON_TYPE, 'text/plain', 'application/octet-stream'];
/** What Fastify calls otherwise. */
const FASTIFY_TYPES: Readonly<Record<string, string>> = { '*/*': '*' };
const NOTHING = Buffer.alloc(0);

interface BodyReader {
  /** The types under which the body is read as bytes. */
  readonly types: readonly string[];
  /** What the handler gets. */
  readonly parse: (bytes: Buffer) => unknown;
}

/** How a body is read that is not what Fastify makes of it. */
function readerOf(body: Body | undefined): BodyReader | undefined {
  const asBytes = (bytes: Buffer) => bytes;
  if (body?.kind === 'signed') return { types: TEXT_TYPES, parse: asBytes };
  if (body?.kind === 'bytes') {
    const { contentType } = body;
    return {
      types: contentType === JSON_TYPE ? TEXT_TYPES : [FASTIFY_TYPES[contentType] ?? contentType],
      parse: asBytes,
    };
  }
  if (body?.kind !== 'json' || !body.isStrict) return undefined;
  const check = createParser(body.schema, 'body', 'INVALID_PARAMETERS');
  const parse = (bytes: Buffer) =>
    body.isOptional && bytes.length === 0 ? {} : check(scanJsonObject(bytes).value);
  return { types: TEXT_TYPES, parse };
}

/** Whatever it is, it is for a program. */
const isPassedOn = (body: Body) => body.kind === 'bytes' && body.contentType === '*/*';

const refuseCoded: preParsingHookHandler = (request, reply, payload, done) => {
  const refusal = whyCoded(request.headers);
  // RFC 9110, section 15.5.16.
  if (refusal) reply.header('accept-encoding', 'identity');
  done(refusal, payload);
};

/** Nothing has no type, whatever its sender says: some clients name one with every POST. */
async function dropTypeOfNothing({ headers }: FastifyRequest): Promise<void> {
  const isNothing = headers['transfer-encoding'] === undefined && (headers['content-length'] ?? '0') === '0';
  if (isNothing) delete headers['content-type'];
}

/** A route of an operation: its path, checks and rate class. What it answers is checked by the compiler. */
function routeOf(
  operation: Operation,
  handler: Handler<Operation>,
  reader: BodyReader | undefined,
  { config, onRequest, preParsing, ...hooks }: ServeOptions,
): RouteOptions {
  const { method, also = [], path, params, query, body, rateClass = 'unlimited' } = operation;
  return {
    method: also.length === 0 ? method : [method, ...also],
    ...(also.includes('HEAD') ? { exposeHeadRoute: false } : {}),
    url: path,
    schema: {
      ...(params ? { params } : {}),
      ...(query ? { querystring: query } : {}),
      ...(body?.kind === 'json' && !reader ? { body: body.schema } : {}),
    },
    ...(body?.limitBytes === undefined ? {} : { bodyLimit: body.limitBytes }),
    config: { ...config, rateClass, operation },
    onRequest: [
      ...(body?.kind === 'json' && body.isOptional ? [dropTypeOfNothing] : []),
      ...(onRequest ? [onRequest] : []),
    ],
    preParsing: [
      ...(body && !isPassedOn(body) ? [refuseCoded] : []),
      ...(preParsing ? [preParsing as preParsingHookHandler] : []),
    ],
    ...(hooks as object),
    async handler(request, reply) {
      const given = await handler({
        params: request.params as object,
        query: request.query as object,
        body: reader ? reader.parse((request.body as Buffer | undefined) ?? NOTHING) : request.body,
        request,
        reply,
      });
      if (!(given instanceof Answered)) return given;
      return reply.status(given.status).headers(given.headers).send(given.body);
    },
  };
}

/** Fastify looks for the name of a plugin that has none among all modules that were ever loaded. */
const NAME = Symbol.for('fastify.display-name');

interface Scope {
  /** The content types whose bodies are read as bytes. */
  readonly types: readonly string[];
  readonly routes: RouteOptions[];
  readonly parsers?: ServeOptions['parsers'];
}

/** Content types are a matter of a scope, and a scope takes longer to make than its routes. */
function addScope(app: HttpServer, { types, routes, parsers }: Scope): void {
  const plugin = async (child: unknown) => {
    const scope = child as HttpServer;
    scope.removeAllContentTypeParsers();
    const asBuffer = { parseAs: 'buffer' } as const;
    if (types.length > 0)
      scope.addContentTypeParser([...types], asBuffer, (_request, body, done) => done(null, body));
    await parsers?.(scope);
    for (const route of routes) scope.route(route);
  };
  app.register(Object.assign(plugin, { [NAME]: `bodies of ${routes[0]!.url}` }));
}

/** Registers an operation. */
export function serve<O extends Operation>(
  app: HttpServer,
  operation: O,
  handler: Handler<O>,
  options: ServeOptions = {},
): void {
  serveAll(app, { operation }, { operation: handler }, () => options);
}

/** Registers a whole table: the compiler asks for a handler of each of its operations. */
export function serveAll<A extends Api>(
  app: HttpServer,
  api: A,
  handlers: Handlers<A>,
  optionsOf: (operation: Operation) => ServeOptions = () => ({}),
): void {
  /** Those whose bodies are read alike. */
  const scopes = new Map<string, Scope>();
  for (const [id, operation] of Object.entries(api)) {
    const { parsers, ...options } = optionsOf(operation);
    const reader = readerOf(operation.body);
    const route = routeOf(operation, handlers[id] as unknown as Handler<Operation>, reader, options);
    if (parsers) addScope(app, { types: reader?.types ?? [], routes: [route], parsers });
    else if (reader) {
      const key = reader.types.join();
      const scope = scopes.get(key) ?? { types: reader.types, routes: [] };
      scope.routes.push(route);
      scopes.set(key, scope);
    } else app.route(route);
  }
  for (const scope of scopes.values()) addScope(app, scope);
}

/**
 * Refuses to start a server that does not serve exactly its contract: every operation of the table, and no route beside them.
 * To be called before the routes are added.
 */
export function expectAll(app: HttpServer, api: Api): void {
  const operations: ReadonlySet<Operation | undefined> = new Set(Object.values(api));
  const missing = new Map(Object.entries(api).map(([id, operation]) => [operation, id]));
  const beside: string[] = [];
  app.addHook('onRoute', ({ method, url, config }) => {
    const operation = config?.operation;
    if (operation) missing.delete(operation);
    if (!operations.has(operation) && String(method) !== 'OPTIONS') beside.push(`${method} ${url}`);
  });
  app.addHook('onReady', async () => {
    const problems = [
      ...[...missing.values()].map((id) => `${id} is not served`),
      ...beside.map((route) => `${route} is in no table`),
    ];
    if (problems.length > 0) throw new Error(`the server does not fit its contract: ${problems.join('; ')}`);
  });
}
