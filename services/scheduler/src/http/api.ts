import { createHttpServer, createLogger, documentRoutes, type HttpServer, type Logger } from '@skerry/kit';
import { addRoutes, type RouteSource } from './routes.ts';

const INFO = {
  title: 'Skerry scheduler',
  description: `Which compute node runs which virtual machine, and why. Reading needs no credential.
Every error is \`{error, status: "error", code}\`.`,
};

/** The scheduler's HTTP door. */
export async function createApi(source: RouteSource, log: Logger): Promise<HttpServer> {
  const app = await createHttpServer({ log, corsMethods: ['GET', 'HEAD'] });
  const document = documentRoutes(app, INFO);
  addRoutes(app, source);
  app.get('/api/v0/openapi.json', { schema: { summary: 'This document' } }, () => document());
  return app;
}

/** The OpenAPI 3.1 document of the routes. No request is served, so no plan is needed behind them. */
export async function describeApi(): Promise<object> {
  const app = await createApi({} as RouteSource, createLogger('describe', 'silent'));
  await app.ready();
  const { payload } = await app.inject('/api/v0/openapi.json');
  await app.close();
  return JSON.parse(payload) as object;
}
