import { type HttpServer, VERSION } from '@skerry/kit';
import type { FastifyReply } from 'fastify';
import Type from 'typebox';
import { answersAlways, answersFromMemory, reads } from './declare.ts';
import type { Rooms } from './rooms.ts';

const TrustSource = Type.Enum(['setting', 'peers', 'unset'], {
  description: "the node's own setting; what its peers do; or nobody said anything",
});
const trusted = (description: string) =>
  Type.Object({ value: Type.Array(Type.String()), source: TrustSource }, { description });
const TrustView = Type.Object(
  {
    schedulers: trusted('whose allocations count'),
    scoring_publishers: trusted('whose measurements are served'),
    credit_publishers: trusted('whose word on credit counts'),
    known_core_nodes: trusted('whose keys for random values count, beside its own'),
    credit_enforcement: Type.Object({ value: Type.Boolean(), source: TrustSource }),
  },
  { description: 'whom this node believes: two nodes that differ here answer differently' },
);
const InfoView = Type.Object({
  node_multi_addresses: Type.Array(Type.String()),
  name: Type.String(),
  version: Type.String(),
  address: Type.String({ description: 'of the key that signs what the node says of itself' }),
  trust: TrustView,
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
      address: rooms.nodeAddress,
      trust: rooms.trust.view() as Type.Static<typeof TrustView>,
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
    trust: Type.Object(checkFields, { description: 'whom the node believes is known, and all follows it' }),
    peers: Type.Object({
      ...checkFields,
      state: Type.Enum(['alone', 'syncing', 'synced', 'apart']),
    }),
    clock: Type.Object({
      ...checkFields,
      offset_ms: Type.Union([Type.Integer(), Type.Null()], {
        description: "what the median of the peers' clocks has more than this machine's",
      }),
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
