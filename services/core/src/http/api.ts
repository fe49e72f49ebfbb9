import swagger from '@fastify/swagger';
import { createHttpServer, type HttpServer, type Logger, VERSION } from '@skerry/kit';
import { ERRORS } from '@skerry/protocol';
import { asDatabaseError } from '../db/failure.ts';
import { eventRoutes } from './events.ts';
import { indexerRoutes } from './indexer.ts';
import { healthRoutes, infoRoutes } from './info.ts';
import { instanceRoutes } from './instances.ts';
import { messageRoutes } from './messages.ts';
import type { Rooms } from './rooms.ts';
import { storageRoutes } from './storage.ts';

const PREFIX = '/api/v0';
const GROUPS = [
  messageRoutes,
  instanceRoutes,
  storageRoutes,
  eventRoutes,
  indexerRoutes,
  infoRoutes,
] as const;

/** The core node's HTTP door. */
export async function createApi(rooms: Rooms, log: Logger): Promise<HttpServer> {
  const app = await createHttpServer({
    log,
    corsMethods: ['GET', 'HEAD', 'POST', 'PUT'],
    translateError: asDatabaseError,
  });
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Skerry core node',
        version: VERSION,
        description: `Every error is {error, status: "error", code}. Codes: ${Object.keys(ERRORS).join(', ')}.`,
      },
    },
  });
  for (const routes of GROUPS) {
    await app.register(async (scope) => routes(scope as HttpServer, rooms), { prefix: PREFIX });
  }
  await app.register(async (scope) => {
    await healthRoutes(scope as HttpServer, rooms);
    scope.get('/api/v0/openapi.json', { schema: { summary: 'This document' } }, async () => app.swagger());
  });
  return app;
}
