import {
  answer,
  createHttpServer,
  expectAll,
  frontHandlers,
  type Handlers,
  type HttpServer,
  type Logger,
  type Metrics,
  type RateLimitOptions,
  rateLimitsOf,
  readConfig,
  referenceHandlers,
  type ServeOptions,
  serveAll,
  withExamples,
  writeDocument,
} from '@skerry/kit';
import { parseItemHash } from '@skerry/protocol';
import { GATEWAY_API, type GatewayStatus } from '@skerry/protocol/api/gateway';
import { gatewayConfig } from '../config.ts';
import type { DataPlane, ListenPorts } from '../dataplane/port.ts';
import type { Refusals } from '../refusals/refusals.ts';
import type { Routing } from '../sync/routing.ts';
import type { SyncReport } from '../sync/synchroniser.ts';
import { fullHostname } from '../table/named-route.ts';
import { explainHttp3, explainWhy, isWorthProbing, NOT_PROBED, parseWhySubject } from '../table/why.ts';
import type { ApiKeys } from './keys.ts';
import { createGatewayMetrics } from './metrics.ts';
import { type NamesOptions, namesHandlers } from './names.ts';
import { type ProbedPorts, Prober } from './probe.ts';
import { recordOfHash, recordOfName } from './records.ts';
import { refusalsView } from './refusals.ts';

export interface ApiOptions {
  readonly routing: Routing;
  readonly keys: ApiKeys;
  readonly sync: (acceptLoss: boolean) => Promise<SyncReport>;
  readonly ports: ListenPorts;
  readonly log: Logger;
  readonly limits: RateLimitOptions;
  readonly plane: DataPlane;
  readonly refusals: Pick<Refusals, 'lately'>;
  readonly core: NamesOptions['core'];
  readonly now: () => number;
  readonly planeName: string;
  /** Of its data directory; undefined where it could not be kept. */
  readonly id: string | undefined;
  /** Ports of instances that `why` tries. */
  readonly instancePorts: ProbedPorts;
}

function statusOf({ routing, ports, id }: ApiOptions): GatewayStatus {
  const { table, lastSyncTime } = routing;
  return {
    instance_count: table.instanceCount,
    route_count: table.routeCount,
    last_sync_time: lastSyncTime,
    domain: table.domain,
    http_port: ports.http,
    https_port: ports.https,
    ...(id === undefined ? {} : { id }),
  };
}

const INFO = {
  title: 'Skerry gateway',
  description: `Which host name leads to which instance, and why one does not answer. Reading needs no credential, but for\nwhat passed to an instance, which only its owner is told.
Every error is \`{error, status: "error", code}\`.`,
};

function handlersOf(options: ApiOptions, metrics: Metrics): Handlers<typeof GATEWAY_API> {
  const { routing, sync, plane } = options;
  const prober = new Prober(options.instancePorts);
  return {
    getDomainOfInstance: ({ params }) => recordOfHash(routing.table, parseItemHash(params.hash)),
    findDomain: ({ params }) => recordOfName(routing.table, params.subdomain),
    getGatewayStatus: () => statusOf(options),
    async explainDomain({ params }) {
      const { table } = routing;
      const subject = parseWhySubject(params.subject, table.domain);
      const instance = isWorthProbing(table, subject);
      const [probes, attempts] = await Promise.all([
        instance ? prober.probe(instance.ipv6!) : NOT_PROBED,
        plane.findAttempts(fullHostname(subject.subdomain, table.domain)),
      ]);
      const { hostname, instanceHash, ipv6, steps, missing } = explainWhy(
        table,
        subject,
        probes.tcp,
        attempts,
      );
      const http3 = explainHttp3(options.ports.noQuic, instance, probes.quic, attempts?.quic);
      return { hostname, instance_hash: instanceHash, ipv6, chain: [...steps], missing, http3 };
    },
    async syncGateway({ body }) {
      const { added, removed, changed, heldBack, durationMs } = await sync(body?.accept_loss === true);
      return {
        ...statusOf(options),
        added,
        removed,
        changed,
        ...(heldBack > 0 ? { held_back: heldBack } : {}),
        duration_ms: Math.round(durationMs * 1000) / 1000,
      };
    },
    listRefusals: ({ query }) => refusalsView(options.refusals.lately(query.limit)),
    getGatewayMetrics: async () =>
      answer(200, await metrics.text(), { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' }),
    ...namesHandlers(options),
    ...frontHandlers(GATEWAY_API, INFO),
    ...referenceHandlers(GATEWAY_API, INFO, options.limits.perMinute, readExamples),
  };
}

const FOR_OPERATORS: ReadonlySet<unknown> = new Set([GATEWAY_API.syncGateway, GATEWAY_API.listRefusals]);

/** For whoever asks for the document: a service that is not asked for it does without. */
const readExamples = async () => (await import('@skerry/protocol/api/examples/gateway')).GATEWAY_EXAMPLES;

/** Before a body is looked at: who may not ask learns nothing else. */
const checkKey =
  (keys: ApiKeys): NonNullable<ServeOptions['onRequest']> =>
  async (request, reply) => {
    reply.header('www-authenticate', 'Bearer');
    keys.check(request.headers.authorization);
    reply.removeHeader('www-authenticate');
  };

/** The gateway's own API. Pages of any origin may read it. */
export async function createApi(options: ApiOptions): Promise<HttpServer> {
  const { log, limits } = options;
  const app = await createHttpServer({ log, limits, corsMethods: ['GET'] });
  expectAll(app, GATEWAY_API);
  serveAll(app, GATEWAY_API, handlersOf(options, await createGatewayMetrics(options)), (operation) =>
    FOR_OPERATORS.has(operation) ? { onRequest: checkKey(options.keys) } : {},
  );
  return app;
}

/** The OpenAPI 3.1 document of the gateway with the default settings. */
export const describeApi = async () =>
  writeDocument(
    withExamples(GATEWAY_API, await readExamples()),
    INFO,
    rateLimitsOf(readConfig(gatewayConfig, {})).perMinute,
  );
