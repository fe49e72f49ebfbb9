import swagger from '@fastify/swagger';
import { createHttpServer, type HttpServer, type Logger, VERSION } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import { asDatabaseError } from '../db/failure.ts';
import { aggregateRoutes } from './aggregates.ts';
import { creditRoutes } from './credits.ts';
import { completeDocument, type Document, noteRoute, type RouteConfigs } from './document.ts';
import { eventRoutes } from './events.ts';
import { indexerRoutes } from './indexer.ts';
import { HEALTH_PATHS, healthRoutes, infoRoutes, metricsRoutes } from './info.ts';
import { instanceRoutes } from './instances.ts';
import { ipfsRoutes } from './ipfs.ts';
import { messageRoutes } from './messages.ts';
import { networkListRoutes } from './network-lists.ts';
import { networkStorageRoutes } from './network-storage.ts';
import { nodeMetricsRoutes } from './node-metrics.ts';
import { programRoutes } from './programs.ts';
import { referenceRoutes } from './reference.ts';
import type { Rooms } from './rooms.ts';
import { stateRoutes } from './state.ts';
import { storageRoutes } from './storage.ts';
import { syncRoutes } from './sync.ts';
import { vrfRoutes } from './vrf.ts';
import { webhookRoutes } from './webhooks.ts';

const PREFIX = '/api/v0';
/** Below the prefix. */
const GROUPS = [
  messageRoutes,
  networkListRoutes,
  storageRoutes,
  networkStorageRoutes,
  ipfsRoutes,
  aggregateRoutes,
  programRoutes,
  instanceRoutes,
  webhookRoutes,
  nodeMetricsRoutes,
  creditRoutes,
  eventRoutes,
  stateRoutes,
  syncRoutes,
  indexerRoutes,
  vrfRoutes,
  infoRoutes,
] as const;
/** With whole paths of their own. */
const ROOT_GROUPS = [healthRoutes, metricsRoutes] as const;

const DESCRIPTION = `Messages are signed by their senders: \`x-signed\` marks what takes one, the signature is the only credential.
Every error is \`{error, status: "error", code}\`; each operation lists the codes that it can answer.
Requests are counted per client address in the class that \`x-rate-limit\` names; more than \`per_minute\` are answered 429 with \`Retry-After\`.
Every answer carries \`x-request-id\`, the caller's own where it sent one.`;

/** The core node's HTTP door. */
export async function createApi(rooms: Rooms, log: Logger): Promise<HttpServer> {
  const { limits, drainMs } = rooms.settings;
  const configs: RouteConfigs = new Map();
  const app = await createHttpServer({
    log,
    corsMethods: ['GET', 'HEAD', 'POST', 'PUT'],
    translateError: asDatabaseError,
    limits,
    drainMs,
    observer: rooms.metrics.http,
    urgentPaths: HEALTH_PATHS,
  });
  app.addHook('onRequest', async ({ url }) => {
    if (url.includes('%00'))
      throw new AppError('INVALID_PARAMETERS', 'no path, filter or cursor holds a NUL character');
  });
  app.addHook('onRoute', (route) => noteRoute(configs, route));
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: { title: 'Skerry core node', version: VERSION, description: DESCRIPTION },
    },
    transformObject: (made) => {
      const document = (made as { openapiObject: unknown }).openapiObject as Document;
      return completeDocument(document, configs, limits.perMinute) as never;
    },
  });
  for (const routes of GROUPS) {
    await app.register(async (scope) => routes(scope as HttpServer, rooms), { prefix: PREFIX });
  }
  for (const routes of ROOT_GROUPS) await app.register(async (scope) => routes(scope as HttpServer, rooms));
  await app.register(async (scope) => referenceRoutes(scope as HttpServer), { prefix: PREFIX });
  return app;
}
