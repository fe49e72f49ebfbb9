import {
  answer,
  createHttpServer,
  expectAll,
  type Handlers,
  type HttpServer,
  type Logger,
  type RateLimitOptions,
  rateLimitsOf,
  readConfig,
  referenceHandlers,
  serveAll,
  withExamples,
  writeDocument,
} from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import { STATUS_API } from '@skerry/protocol/api/status';
import { statusConfig } from '../config.ts';
import type { Service } from '../history/store.ts';
import { CONTENT_SECURITY_POLICY, renderPage } from './page.ts';
import { daysView, failuresView, selectServices, serviceView, uptimeView } from './views.ts';

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
  description: `Whether the services of the network answer, now, during the last week, and day by day for a year. Reading requires no credential.\nEvery error is \`{error, status: "error", code}\`.`,
};

/** For whoever asks for the document: a service that is not asked for it does without. */
const readExamples = async () => (await import('@skerry/protocol/api/examples/status')).STATUS_EXAMPLES;

function handlersOf(
  { services, find, reasons, periodSeconds, now }: ApiSource,
  { perMinute }: RateLimitOptions,
): Handlers<typeof STATUS_API> {
  const findOrThrow = (id: number): Service => {
    const service = find(id);
    if (!service) throw new AppError('SERVICE_NOT_FOUND', `no service has the id ${id}`);
    return service;
  };
  const viewsOf = (some: readonly Service[]) =>
    some.map((service) => serviceView(service, now(), periodSeconds));
  return {
    listServices: ({ query }) => viewsOf(selectServices(services(), query)),
    getService: ({ params }) => serviceView(findOrThrow(params.id), now(), periodSeconds),
    listFailures: ({ params }) => failuresView(findOrThrow(params.id)),
    listUptime: ({ params }) => uptimeView(findOrThrow(params.id), now()),
    listDays: ({ params }) => daysView(findOrThrow(params.id), now()),
    getStatus() {
      const all = services();
      return {
        status: reasons().length === 0 ? 'ok' : 'degraded',
        reasons: [...reasons()],
        services: { total: all.length, online: all.filter(({ history }) => history.last?.isOnline).length },
      };
    },
    getPage: () =>
      answer(200, renderPage(services(), viewsOf, now()), {
        'content-type': 'text/html; charset=utf-8',
        'content-security-policy': CONTENT_SECURITY_POLICY,
        'x-content-type-options': 'nosniff',
      }),
    ...referenceHandlers(STATUS_API, INFO, perMinute, readExamples),
  };
}

/** The status service's HTTP door. */
export async function createApi(
  source: ApiSource,
  limits: RateLimitOptions,
  log: Logger,
): Promise<HttpServer> {
  const app = await createHttpServer({ log, limits, corsMethods: ['GET', 'HEAD'] });
  expectAll(app, STATUS_API);
  serveAll(app, STATUS_API, handlersOf(source, limits));
  return app;
}

/** The OpenAPI 3.1 document of the status service with the default settings. */
export const describeApi = async () =>
  writeDocument(
    withExamples(STATUS_API, await readExamples()),
    INFO,
    rateLimitsOf(readConfig(statusConfig, {})).perMinute,
  );
