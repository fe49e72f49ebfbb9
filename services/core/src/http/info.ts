import { type HttpServer, VERSION } from '@skerry/kit';
import type { FastifyReply } from 'fastify';
import Type from 'typebox';
import { answersAlways, answersFromMemory, reads } from './declare.ts';
import type { Rooms } from './rooms.ts';

const InfoView = Type.Object({
  node_multi_addresses: Type.Array(Type.String()),
  name: Type.String(),
  version: Type.String(),
});
const VersionView = Type.Object({ version: Type.String() });

/** What the node says of itself (specification, "Reachability check"): answered without touching the database. */
export async function infoRoutes(app: HttpServer, rooms: Rooms): Promise<void> {
  app.get(
    '/info/public.json',
    {
      schema: { summary: 'Reachability and version', response: { 200: InfoView } },
      config: answersFromMemory(),
    },
    async () => ({
      node_multi_addresses: [...rooms.network.addresses()],
      name: rooms.settings.nodeName,
      version: VERSION,
    }),
  );
  app.get(
    '/version',
    {
      schema: { summary: 'Software version', response: { 200: VersionView } },
      config: answersFromMemory(),
    },
    async () => ({ version: VERSION }),
  );
}

const CheckStatus = Type.Union([Type.Literal('ok'), Type.Literal('degraded'), Type.Literal('unavailable')]);
const checkFields = { status: CheckStatus, reason: Type.Optional(Type.String()) };
const HealthView = Type.Object({
  ...checkFields,
  version: Type.String(),
  checks: Type.Object({
    database: Type.Object(checkFields),
    disk: Type.Object({
      ...checkFields,
      free_bytes: Type.Union([Type.Integer(), Type.Null()], { description: 'of the data directory' }),
      reserve_bytes: Type.Union([Type.Integer(), Type.Null()], {
        description: 'below so much nothing new is taken',
      }),
      takes_writes: Type.Boolean({ description: 'whether messages and files are taken now' }),
    }),
    pipeline: Type.Object({
      ...checkFields,
      queued: Type.Integer({ description: 'messages that wait to be written' }),
    }),
    peers: Type.Object({
      ...checkFields,
      state: Type.Enum(['alone', 'syncing', 'synced', 'apart']),
    }),
  }),
});

export const HEALTH_PATHS = ['/health', '/api/v0/health'] as const;

/** Whether the node can do its work, with the reason where it cannot. 503 tells a balancer to ask another one. */
export async function healthRoutes(app: HttpServer, rooms: Rooms): Promise<void> {
  const answer = async (_request: unknown, reply: FastifyReply) => {
    const { status, reason, checks } = await rooms.health();
    if (status === 'unavailable') reply.status(503);
    const why = reason === undefined ? {} : { reason };
    return reply.header('cache-control', 'no-store').send({ status, ...why, version: VERSION, checks });
  };
  for (const path of HEALTH_PATHS) {
    app.get(
      path,
      {
        schema: {
          summary: 'Whether the node can answer and keep messages',
          response: { 200: HealthView, 503: HealthView },
        },
        config: answersAlways(),
      },
      answer,
    );
  }
}

const NumberOrNull = Type.Union([Type.Number(), Type.Null()]);
const DeployedView = Type.Object(
  { pyaleph_build_info: Type.Object({ python_version: Type.Null(), version: Type.String() }) },
  { additionalProperties: NumberOrNull, description: 'null: not known to this node' },
);
const PrometheusView = {
  description: 'the Prometheus text format, version 0.0.4',
  content: { 'text/plain': { schema: Type.String() } },
};
const PROMETHEUS_TEXT = 'text/plain; version=0.0.4; charset=utf-8';

/** What the node counts. Both are made now and then, however often they are asked for. */
export async function metricsRoutes(app: HttpServer, rooms: Rooms): Promise<void> {
  app.get(
    '/metrics.json',
    {
      schema: { summary: 'Metrics under the names of deployed nodes', response: { 200: DeployedView } },
      config: reads(),
    },
    async () => rooms.metrics.json(),
  );
  app.get(
    '/metrics',
    {
      schema: { summary: 'Metrics for Prometheus', response: { 200: PrometheusView } },
      config: reads(),
    },
    async (_request, reply) => reply.type(PROMETHEUS_TEXT).send(await rooms.metrics.text()),
  );
}
