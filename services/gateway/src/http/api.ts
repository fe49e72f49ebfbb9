import { createHttpServer, type HttpServer, type Logger } from '@skerry/kit';
import { parseItemHash } from '@skerry/protocol';
import Type from 'typebox';
import type { DataPlane, ListenPorts } from '../dataplane/port.ts';
import type { Routing } from '../sync/routing.ts';
import type { SyncReport } from '../sync/synchroniser.ts';
import { fullHostname } from '../table/compile.ts';
import { explainWhy, isWorthProbing, parseWhySubject } from '../table/why.ts';
import type { ApiKeys } from './keys.ts';
import { renderMetrics } from './metrics.ts';
import { Prober } from './probe.ts';
import { DomainRecord, recordOfHash, recordOfName, StatusRecord, SyncRecord, WhyRecord } from './records.ts';

export interface ApiOptions {
  readonly routing: Routing;
  readonly keys: ApiKeys;
  readonly sync: (acceptLoss: boolean) => Promise<SyncReport>;
  readonly ports: ListenPorts;
  readonly log: Logger;
  readonly plane: DataPlane;
  readonly planeName: string;
  /** Ports of instances that `why` tries. */
  readonly instancePorts: readonly number[];
}

/** What a sync may be told. */
const SyncRequest = Type.Union([
  Type.Null(),
  Type.Object(
    {
      accept_loss: Type.Optional(
        Type.Boolean({ description: 'what the core node lacks is meant to be gone, however much it is' }),
      ),
    },
    { additionalProperties: false },
  ),
]);

function statusOf({ routing, ports }: ApiOptions): StatusRecord {
  const { table, lastSyncTime } = routing;
  return {
    instance_count: table.instanceCount,
    route_count: table.routeCount,
    last_sync_time: lastSyncTime,
    domain: table.domain,
    http_port: ports.http,
    https_port: ports.https,
  };
}

/** The gateway's own API. Pages of any origin may read it. */
export async function createApi(options: ApiOptions): Promise<HttpServer> {
  const { routing, keys, sync, log } = options;
  const app = await createHttpServer({ log, corsMethods: ['GET'] });

  app.get<{ Params: { hash: string } }>(
    '/api/hash/:hash',
    { schema: { response: { 200: DomainRecord } } },
    async (request) => recordOfHash(routing.table, parseItemHash(request.params.hash)),
  );

  app.get<{ Params: { subdomain: string } }>(
    '/api/lookup/:subdomain',
    { schema: { response: { 200: DomainRecord } } },
    async (request) => recordOfName(routing.table, request.params.subdomain),
  );

  app.get('/api/status', { schema: { response: { 200: StatusRecord } } }, async () => statusOf(options));

  const prober = new Prober(options.instancePorts);
  app.get<{ Params: { subject: string } }>(
    '/api/why/:subject',
    { schema: { response: { 200: WhyRecord } } },
    async (request): Promise<WhyRecord> => {
      const { table } = routing;
      const subject = parseWhySubject(request.params.subject, table.domain);
      const instance = isWorthProbing(table, subject);
      const [probes, attempts] = await Promise.all([
        instance ? prober.probe(instance.ipv6!) : [],
        options.plane.findAttempts(fullHostname(subject.subdomain, table.domain)),
      ]);
      const { hostname, instanceHash, ipv6, steps, missing } = explainWhy(table, subject, probes, attempts);
      return { hostname, instance_hash: instanceHash, ipv6, chain: [...steps], missing };
    },
  );

  app.get('/metrics', async (_request, reply) => {
    reply.type('text/plain; version=0.0.4; charset=utf-8');
    return renderMetrics(options.plane.stats(), routing, options.planeName);
  });

  app.post<{ Body: { accept_loss?: boolean } | null | undefined }>(
    '/api/sync',
    {
      // Before the body is looked at: who may not ask learns nothing else.
      onRequest: async (request, reply) => {
        reply.header('www-authenticate', 'Bearer');
        keys.check(request.headers.authorization);
        reply.removeHeader('www-authenticate');
      },
      schema: { body: SyncRequest, response: { 200: SyncRecord } },
    },
    async (request): Promise<SyncRecord> => {
      const { added, removed, changed, heldBack, durationMs } = await sync(
        request.body?.accept_loss === true,
      );
      return {
        ...statusOf(options),
        added,
        removed,
        changed,
        ...(heldBack > 0 ? { held_back: heldBack } : {}),
        duration_ms: Math.round(durationMs * 1000) / 1000,
      };
    },
  );
  return app;
}
