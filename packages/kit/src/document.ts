import { ERRORS, type ErrorCode } from '@skerry/protocol';
import type { FastifyContextConfig, RouteOptions } from 'fastify';
import type { HttpServer } from './http.ts';
import { VERSION } from './version.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The codes that a route may answer, beside INTERNAL and those of its parameters. */
    errors?: readonly ErrorCode[];
  }
}

export interface ApiInfo {
  readonly title: string;
  readonly description: string;
}

/** JSON Schema, as far as parameters need it. */
interface ObjectSchema {
  readonly properties?: Readonly<
    Record<string, { readonly description?: string; readonly default?: unknown }>
  >;
  readonly required?: readonly string[];
}

interface RouteSchema {
  readonly summary?: string;
  readonly description?: string;
  readonly params?: ObjectSchema;
  readonly querystring?: ObjectSchema;
  readonly body?: object;
  readonly response?: Readonly<Record<string, object>>;
  readonly produces?: readonly string[];
}

interface Route {
  readonly method: string;
  readonly path: string;
  readonly schema: RouteSchema;
  readonly config: FastifyContextConfig;
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

function parametersOf(place: 'path' | 'query', { properties = {}, required = [] }: ObjectSchema = {}) {
  return Object.entries(properties).map(([name, { description, ...schema }]) => ({
    name,
    in: place,
    required: place === 'path' || (required.includes(name) && schema.default === undefined),
    ...(description === undefined ? {} : { description }),
    schema,
  }));
}

function errorsOf({ schema, config }: Route): Record<string, object> {
  const codes = new Set<ErrorCode>([
    ...(config.errors ?? []),
    ...(schema.params || schema.querystring ? (['INVALID_PARAMETERS'] as const) : []),
    'INTERNAL',
  ]);
  const byStatus = Map.groupBy(codes, (code) => ERRORS[code].httpStatus);
  return Object.fromEntries(
    Array.from(byStatus, ([status, some]) => [
      status,
      {
        description: some.map((code) => `${code}: ${ERRORS[code].meaning}`).join('. '),
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

/** `GET /api/v0/allocation/{vm_hash}` -> `getAllocationByVmHash` */
function operationIdOf({ method, path }: Route): string {
  const words = (parts: string[]) =>
    parts
      .flatMap((part) => part.split(/[^A-Za-z0-9]+/))
      .filter((part) => part !== '')
      .map((part) => part[0]!.toUpperCase() + part.slice(1))
      .join('');
  const parts = path
    .replace(/^\/api\/v0\//, '/')
    .split('/')
    .filter(Boolean);
  const variable = words(parts.filter((part) => part.startsWith('{')));
  return `${method}${words(parts.filter((part) => !part.startsWith('{'))) || 'Root'}${variable === '' ? '' : `By${variable}`}`;
}

function operationOf(route: Route): object {
  const { schema } = route;
  const [type = 'application/json'] = schema.produces ?? [];
  const answers = Object.fromEntries(
    Object.entries(schema.response ?? {}).map(([status, one]) => [
      status,
      { description: status === '200' ? 'success' : 'an answer', content: { [type]: { schema: one } } },
    ]),
  );
  return {
    operationId: operationIdOf(route),
    ...(schema.summary === undefined ? {} : { summary: schema.summary }),
    ...(schema.description === undefined ? {} : { description: schema.description }),
    parameters: [...parametersOf('path', schema.params), ...parametersOf('query', schema.querystring)],
    ...(schema.body
      ? { requestBody: { required: true, content: { 'application/json': { schema: schema.body } } } }
      : {}),
    responses: { ...errorsOf(route), ...answers },
    security: [],
  };
}

/**
 * The OpenAPI 3.1 document of a server, from what its routes declare: their schemas, and in `config.errors` what they may
 * refuse with. To be called before the routes are added.
 * @returns makes the document, once the routes are there
 */
export function documentRoutes(app: HttpServer, { title, description }: ApiInfo): () => object {
  const routes: Route[] = [];
  app.addHook('onRoute', ({ method, url, schema, config }: RouteOptions) => {
    const path = url.replace(/:([A-Za-z_]+)/g, '{$1}');
    for (const one of [method].flat())
      if (one !== 'HEAD' && one !== 'OPTIONS')
        routes.push({
          method: one.toLowerCase(),
          path,
          schema: (schema ?? {}) as RouteSchema,
          config: config ?? {},
        });
  });
  return () => {
    const paths: Record<string, Record<string, object>> = {};
    for (const route of routes) {
      paths[route.path] ??= {};
      paths[route.path]![route.method] = operationOf(route);
    }
    return {
      openapi: '3.1.0',
      info: { title, version: VERSION, description },
      components: { schemas: { ErrorBody: ERROR_BODY } },
      paths,
    };
  };
}
