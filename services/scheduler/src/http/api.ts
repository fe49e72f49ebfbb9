import {
  createHttpServer,
  expectAll,
  type HttpServer,
  type Logger,
  type RateLimitOptions,
  rateLimitsOf,
  readConfig,
  serveAll,
  withExamples,
  writeDocument,
} from '@skerry/kit';
import { SCHEDULER_API } from '@skerry/protocol/api/scheduler';
import { schedulerConfig } from '../config.ts';
import { handlersOf, INFO, type RouteSource, readExamples } from './routes.ts';

/** The scheduler's HTTP door. */
export async function createApi(
  source: RouteSource,
  limits: RateLimitOptions,
  log: Logger,
): Promise<HttpServer> {
  const app = await createHttpServer({ log, limits, corsMethods: ['GET', 'HEAD'] });
  expectAll(app, SCHEDULER_API);
  serveAll(app, SCHEDULER_API, handlersOf(source, limits));
  return app;
}

/** The OpenAPI 3.1 document of the scheduler with the default settings. */
export const describeApi = async () =>
  writeDocument(
    withExamples(SCHEDULER_API, await readExamples()),
    INFO,
    rateLimitsOf(readConfig(schedulerConfig, {})).perMinute,
  );
