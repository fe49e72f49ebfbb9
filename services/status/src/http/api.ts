import { createHttpServer, createLogger, documentRoutes, type HttpServer, type Logger } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import Type from 'typebox';
import type { Service } from '../history/store.ts';
import { CONTENT_SECURITY_POLICY, renderPage } from './page.ts';
import {
  FailureView,
  failuresView,
  ServicesView,
  ServiceView,
  StatusView,
  serviceView,
  UptimeView,
  uptimeView,
} from './views.ts';

export interface ApiSource {
  readonly services: () => readonly Service[];
  readonly find: (id: number) => Service | undefined;
  /** Everything that keeps the service itself from being in order, each as a sentence. */
  readonly reasons: () => readonly string[];
  readonly periodSeconds: number;
  readonly now: () => number;
}

const INFO = {
  title: 'Skerry status service',
  description: `Whether the services of the network answer, now and over the last week. Reading needs no credential.
Every error is \`{error, status: "error", code}\`.`,
};

const Params = Type.Object({
  id: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, description: 'as in the list' }),
});

function addServiceRoutes(app: HttpServer, source: ApiSource): void {
  const { services, find, periodSeconds, now } = source;
  const findOrThrow = (id: number): Service => {
    const service = find(id);
    if (!service) throw new AppError('SERVICE_NOT_FOUND', `no service has the id ${id}`);
    return service;
  };
  const config = { errors: ['SERVICE_NOT_FOUND'] as const };

  app.get(
    '/api/services',
    { schema: { summary: 'Every service, and how it was doing', response: { 200: ServicesView } } },
    () => services().map((service) => serviceView(service, now(), periodSeconds)),
  );
  app.get(
    '/api/services/:id',
    { schema: { summary: 'One service', params: Params, response: { 200: ServiceView } }, config },
    ({ params }) => serviceView(findOrThrow(params.id), now(), periodSeconds),
  );
  app.get(
    '/api/services/:id/failures',
    {
      schema: {
        summary: 'Its last failures, newest first',
        params: Params,
        response: { 200: Type.Array(FailureView) },
      },
      config,
    },
    ({ params }) => failuresView(findOrThrow(params.id)),
  );
  app.get(
    '/api/services/:id/uptime_data',
    {
      schema: {
        summary: 'Its last week in quarters of an hour, oldest first',
        params: Params,
        response: { 200: Type.Array(UptimeView) },
      },
      config,
    },
    ({ params }) => uptimeView(findOrThrow(params.id), now()),
  );
}

/** The status service's HTTP door. */
export async function createApi(source: ApiSource, log: Logger): Promise<HttpServer> {
  const { services, reasons, periodSeconds, now } = source;
  const app = await createHttpServer({ log, corsMethods: ['GET', 'HEAD'] });
  const document = documentRoutes(app, INFO);
  addServiceRoutes(app, source);
  app.get(
    '/status',
    { schema: { summary: 'Whether the status service itself is in order', response: { 200: StatusView } } },
    () => {
      const all = services();
      return {
        status: reasons().length === 0 ? ('ok' as const) : ('degraded' as const),
        reasons: [...reasons()],
        services: { total: all.length, online: all.filter(({ history }) => history.last?.isOnline).length },
      };
    },
  );
  app.get(
    '/',
    { schema: { summary: 'The same for people', produces: ['text/html'], response: { 200: Type.String() } } },
    async (_request, reply) => {
      const views = services().map((service) => serviceView(service, now(), periodSeconds));
      return reply
        .headers({ 'content-security-policy': CONTENT_SECURITY_POLICY, 'x-content-type-options': 'nosniff' })
        .type('text/html; charset=utf-8')
        .serializer((text: string) => text)
        .send(renderPage(views, now()));
    },
  );
  app.get('/api/v0/openapi.json', { schema: { summary: 'This document' } }, () => document());
  return app;
}

/** The OpenAPI 3.1 document of the routes. No request is served, so nothing is needed behind them. */
export async function describeApi(): Promise<object> {
  const app = await createApi({} as ApiSource, createLogger('describe', 'silent'));
  await app.ready();
  const { payload } = await app.inject('/api/v0/openapi.json');
  await app.close();
  return JSON.parse(payload) as object;
}
