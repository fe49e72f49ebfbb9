import {
  createHttpServer,
  expectAll,
  type HttpServer,
  type Logger,
  serveAll,
  writeDocument,
} from '@skerry/kit';
import { SCHEDULER_API } from '@skerry/protocol/api/scheduler';
import { handlersOf, INFO, type RouteSource } from './routes.ts';

/** The scheduler's HTTP door. */
export async function createApi(source: RouteSource, log: Logger): Promise<HttpServer> {
  const app = await createHttpServer({ log, corsMethods: ['GET', 'HEAD'] });
  expectAll(app, SCHEDULER_API);
  serveAll(app, SCHEDULER_API, handlersOf(source));
  return app;
}

/** The OpenAPI 3.1 document of the scheduler. */
export const describeApi = () => writeDocument(SCHEDULER_API, INFO);
