import { ERRORS, type ErrorCode } from '@skerry/protocol';
import type { FastifyContextConfig, RouteOptions } from 'fastify';

/** The parts of an OpenAPI 3.1 document that are completed here. */
export interface Document {
  openapi: string;
  info: { title: string; version: string; description?: string };
  components?: { schemas?: Record<string, object> };
  paths: Record<string, Record<string, Operation>>;
}

export interface Operation {
  operationId?: string;
  summary?: string;
  description?: string;
  tags?: string[];
  parameters?: Parameter[];
  requestBody?: object;
  responses: Record<string, Response>;
  security?: object[];
  'x-rate-limit'?: { class: string; per_minute: number | null };
  'x-signed'?: boolean;
}

interface Parameter {
  name: string;
  in: string;
  required?: boolean;
  description?: string;
  schema?: { default?: unknown; description?: string };
}

interface Response {
  description: string;
  headers?: object;
  content?: Record<string, object>;
}

/** What parameters mean wherever they stand; a route that means something else says so itself. */
const PARAMETERS: Readonly<Record<string, string>> = {
  page: 'the page, from 1',
  limit: 'how many on a page',
  cursor: 'go on after this mark, which an earlier answer gave',
  hash: '64 hexadecimal digits',
  address: 'an address, in any spelling of its chain',
  key: 'the key of an aggregate',
  instance_id: 'item hash of the INSTANCE message',
  program_hash: 'item hash of the PROGRAM message',
  status: 'only those with this status',
  network: 'a network that the node indexes, such as ethereum',
  node_hash: 'the node, 64 hexadecimal digits',
  from_block: 'from this block on',
  to_block: 'up to this block, included',
  from_timestamp: 'from this time on, Unix seconds',
  to_timestamp: 'up to this time, included, Unix seconds',
  startDate: 'only those at this time or later, Unix seconds',
  endDate: 'only those before this time, Unix seconds',
};

/** `GET /api/v0/messages/:hash` -> `get /api/v0/messages/{hash}` */
const routeKey = (method: string, path: string) =>
  `${method.toLowerCase()} ${path.replace(/:([A-Za-z_]+)/g, '{$1}').replace(/\*$/, '{*}')}`;

/** `get /api/v0/instances/{instance_id}/control` -> `getInstancesControlByInstanceId` */
function operationIdOf(method: string, path: string): string {
  const isRoot = !path.startsWith('/api/v0/');
  const parts = path
    .replace(/^\/api\/v0\//, '')
    .split(/[/.]/)
    .filter(Boolean);
  const words = (text: string) =>
    text
      .split(/[^A-Za-z0-9]+/)
      .filter(Boolean)
      .map((word) => word[0]!.toUpperCase() + word.slice(1))
      .join('');
  const fixed = parts.filter((part) => !part.startsWith('{')).map(words);
  const variable = parts.filter((part) => part.startsWith('{')).map(words);
  const by = variable.length > 0 ? `By${variable.join('And')}` : '';
  return `${method}${isRoot ? 'Root' : ''}${fixed.join('')}${by}`;
}

const NODE_PATHS = new Set(['info', 'version', 'health', 'docs']);

function tagOf(path: string): string {
  const [first] = path.replace(/^\/api\/v0\//, '').split('/');
  const isNode = !path.startsWith('/api/v0/') || !/^[a-z]+$/.test(first ?? '') || NODE_PATHS.has(first!);
  return isNode ? 'node' : first!;
}

/** Every code that a route may answer: what it says, and what follows from its class and its parameters. */
function errorsOf(config: FastifyContextConfig, operation: Operation): ErrorCode[] {
  const hasQuery = operation.parameters?.some((one) => one.in === 'query');
  const implied: ErrorCode[] = [
    ...(hasQuery ? (['INVALID_PARAMETERS', 'UNKNOWN_FIELD'] as const) : []),
    ...(operation.parameters?.some((one) => one.in === 'path') ? (['INVALID_PARAMETERS'] as const) : []),
    ...(config.rateClass === 'unlimited' ? [] : (['RATE_LIMITED'] as const)),
    'INTERNAL',
  ];
  return [...new Set([...(config.errors ?? []), ...implied])];
}

const RETRY_AFTER = {
  'Retry-After': { description: 'seconds to wait', schema: { type: 'integer', minimum: 1 } },
};

/** Refusals that say when to come back (kit/http.ts). */
const PASSING: readonly ErrorCode[] = ['OVERLOADED', 'DATABASE_UNAVAILABLE', 'SHUTTING_DOWN'];

function errorResponses(codes: readonly ErrorCode[]): Record<string, Response> {
  const byStatus = Map.groupBy(codes, (code) => ERRORS[code].httpStatus);
  return Object.fromEntries(
    [...byStatus].map(([status, some]) => [
      status,
      {
        description: some.map((code) => `${code}: ${ERRORS[code].meaning}`).join('. '),
        ...(status === 429 || some.some((code) => PASSING.includes(code)) ? { headers: RETRY_AFTER } : {}),
        content: {
          'application/json': {
            schema: {
              allOf: [{ $ref: '#/components/schemas/ErrorBody' }],
              properties: { code: { enum: some } },
            },
          },
        },
      },
    ]),
  );
}

function completeParameter(parameter: Parameter): Parameter {
  const { name, schema } = parameter;
  const description = parameter.description ?? schema?.description ?? PARAMETERS[name];
  return {
    ...parameter,
    ...(description === undefined ? {} : { description }),
    // What has a default may be left out, whatever the type behind it says.
    required: parameter.in === 'path' || (parameter.required === true && schema?.default === undefined),
  };
}

const DESCRIPTIONS: Readonly<Record<string, string>> = {
  422: 'a message of the network form that is refused',
  503: 'not available now; the body says why',
};

function completeOperation(
  method: string,
  path: string,
  operation: Operation,
  config: FastifyContextConfig,
  perMinute: Readonly<Record<string, number>>,
): Operation {
  const { rateClass = 'general', body } = config;
  const responses = Object.fromEntries(
    Object.entries(operation.responses).map(([status, response]) => [
      status,
      response.description === 'Default Response'
        ? { ...response, description: DESCRIPTIONS[status] ?? 'success' }
        : response,
    ]),
  );
  const errors = errorResponses(errorsOf(config, operation));
  return {
    operationId: operationIdOf(method, path),
    tags: [tagOf(path)],
    ...operation,
    ...(operation.parameters ? { parameters: operation.parameters.map(completeParameter) } : {}),
    ...(body === undefined
      ? {}
      : { requestBody: { required: true, content: { [body.contentType]: { schema: body.schema } } } }),
    responses: { ...errors, ...responses },
    security: [],
    'x-signed': rateClass === 'authenticated',
    'x-rate-limit': { class: rateClass, per_minute: perMinute[rateClass] ?? null },
  };
}

const ERROR_BODY = {
  type: 'object',
  required: ['error', 'status', 'code'],
  properties: {
    error: { type: 'string', description: 'a sentence for people' },
    status: { const: 'error' },
    code: { type: 'string', enum: Object.keys(ERRORS), description: 'for programs' },
    details: { description: 'more, where there is more to say' },
  },
};

export type RouteConfigs = Map<string, FastifyContextConfig>;

/** Remembers what a route declares, for the document. */
export function noteRoute(configs: RouteConfigs, route: RouteOptions): void {
  for (const method of [route.method].flat()) configs.set(routeKey(method, route.url), route.config ?? {});
}

/**
 * Completes the document that was made from the routes' schemas with what holds for all of them: ids, tags, rate classes,
 * and every error that each route can answer.
 * @param perMinute the rates of the classes
 */
export function completeDocument(
  document: Document,
  configs: RouteConfigs,
  perMinute: Readonly<Record<string, number>>,
): Document {
  const paths = Object.fromEntries(
    Object.entries(document.paths).map(([path, operations]) => [
      path,
      Object.fromEntries(
        Object.entries(operations).map(([method, operation]) => [
          method,
          completeOperation(method, path, operation, configs.get(routeKey(method, path)) ?? {}, perMinute),
        ]),
      ),
    ]),
  );
  const schemas = { ...document.components?.schemas, ErrorBody: ERROR_BODY };
  return { ...document, components: { ...document.components, schemas }, paths };
}
