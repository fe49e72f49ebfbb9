import { LIMITS } from '../../limits.ts';
import { type Static, Type } from '../../type.ts';
import { NODE_PROOF_PATH, NodeProofView } from '../../views.ts';
import { type Api, orNull, text } from '../operation.ts';
import { answersAlways, answersFromMemory, reads } from './common/declare.ts';

const TrustSource = Type.Enum(['setting', 'peers', 'unset'], {
  title: 'TrustSource',
  description: "the node's own setting, what its peers trust, or neither",
});
const trusted = (description: string) =>
  Type.Object({ value: Type.Array(Type.String()), source: TrustSource }, { description });

export const TrustView = Type.Object(
  {
    schedulers: trusted('whose allocations count'),
    scoring_publishers: trusted('whose measurements are served'),
    credit_publishers: trusted('whose word on credit counts'),
    known_core_nodes: trusted('whose keys for random values count, beside its own'),
    credit_enforcement: Type.Object({ value: Type.Boolean(), source: TrustSource }),
  },
  {
    title: 'Trust',
    description: 'the publishers this node trusts: nodes that differ here give different answers',
  },
);
export type TrustView = Static<typeof TrustView>;

/** Services of a network that people and clients ask beside its core nodes. */
export const NETWORK_SERVICES = ['gateway', 'scheduler', 'credit', 'status'] as const;
export type NetworkService = (typeof NETWORK_SERVICES)[number];

const serviceUrl = (description: string) => Type.Optional(Type.String({ description }));
const ServicesView = Type.Object(
  {
    gateway: serviceUrl("URL of the gateway's API"),
    scheduler: serviceUrl('URL of the scheduler'),
    credit: serviceUrl('URL of the credit service'),
    status: serviceUrl('URL of the status service'),
  } satisfies Record<NetworkService, unknown>,
  { title: 'Services', description: "where the node's operator says that services of its network are" },
);

export const InfoView = Type.Object(
  {
    node_multi_addresses: Type.Array(Type.String()),
    name: Type.String(),
    version: Type.String(),
    address: Type.String({ description: 'address of the key that signs what the node announces' }),
    trust: TrustView,
    services: Type.Optional(ServicesView),
  },
  { title: 'Info' },
);
export type InfoView = Static<typeof InfoView>;

const VersionView = Type.Object({ version: Type.String() }, { title: 'Version' });

const check = {
  status: Type.Enum(['ok', 'degraded', 'unavailable']),
  reason: Type.Optional(Type.String()),
  since_ms: Type.Optional(
    Type.Integer({ description: 'since when it was seen not to be ok, Unix milliseconds' }),
  ),
};
const Check = Type.Object(check, { title: 'Check' });

const HealthView = Type.Object(
  {
    ...check,
    version: Type.String(),
    checks: Type.Object({
      database: Check,
      disk: Type.Object({
        ...check,
        free_bytes: orNull(Type.Integer(), { description: 'of the data directory' }),
        reserve_bytes: orNull(Type.Integer(), { description: 'below this, nothing new is accepted' }),
        takes_writes: Type.Boolean({ description: 'whether messages and files are accepted now' }),
      }),
      pipeline: Type.Object({
        ...check,
        queued: Type.Integer({ description: 'messages waiting to be written' }),
      }),
      trust: Type.Object(check, { description: 'trusted publishers are known and applied everywhere' }),
      roles: Type.Optional(
        Type.Object(check, {
          description: 'processes of the node fill all its roles; older nodes do not say',
        }),
      ),
      chains: Type.Optional(
        Type.Object(check, {
          description: 'chains are read, and the archives that the node packs; older nodes do not say',
        }),
      ),
      peers: Type.Object({ ...check, state: Type.Enum(['alone', 'syncing', 'synced', 'apart']) }),
      clock: Type.Object({
        ...check,
        offset_ms: orNull(Type.Integer(), {
          description: "what the median of the peers' clocks has more than this server's",
        }),
      }),
    }),
  },
  { title: 'Health' },
);
export type HealthView = Static<typeof HealthView>;

const MetricsView = Type.Object(
  { pyaleph_build_info: Type.Object({ python_version: Type.Null(), version: Type.String() }) },
  {
    title: 'Metrics',
    additionalProperties: orNull(Type.Number()),
    description: 'null: not known to this node',
  },
);

const healthAt = <const Path extends string>(path: Path) =>
  ({
    method: 'GET',
    path,
    summary: 'Check that the node can answer and accept messages',
    tag: 'node',
    ...answersAlways(),
    answers: { 200: HealthView, 503: HealthView },
  }) as const;

/** What the node says of itself (specification, "Reachability check"), whether it can do its work, what it counts. */
export const NODE_API = {
  getInfo: {
    method: 'GET',
    path: '/api/v0/info/public.json',
    summary: "Get the node's addresses and version",
    tag: 'node',
    ...answersFromMemory(),
    answers: { 200: InfoView },
    deployed: { differs: 'also says whom the node trusts, and where services of its network are' },
  },
  /** As compute nodes prove theirs (node-proof.ts). A core node may be reached at several places: the caller says which. */
  proveCoreNode: {
    method: 'GET',
    path: NODE_PROOF_PATH,
    summary: "A signature by the node's key over the challenge and the place where it is asked",
    tag: 'node',
    ...answersFromMemory(),
    rateClass: 'heavy',
    query: Type.Object(
      {
        challenge: Type.String({ maxLength: 64, description: '64 lower-case hexadecimal digits' }),
        place: Type.Optional(
          Type.String({
            maxLength: LIMITS.urlChars,
            description: 'where the caller asks; the node signs it only if it is one of its own places',
          }),
        ),
      },
      { additionalProperties: false },
    ),
    answers: { 200: NodeProofView },
  },
  getVersion: {
    method: 'GET',
    path: '/api/v0/version',
    summary: 'Get the software version',
    tag: 'node',
    ...answersFromMemory(),
    answers: { 200: VersionView },
    deployed: {},
  },
  getRootVersion: {
    method: 'GET',
    path: '/version',
    summary: 'Get the software version (path of deployed nodes)',
    tag: 'node',
    ...answersFromMemory(),
    answers: { 200: VersionView },
    deployed: {},
  },
  getHealth: healthAt('/health'),
  getApiHealth: healthAt('/api/v0/health'),
  getDeployedMetrics: {
    method: 'GET',
    path: '/metrics.json',
    summary: 'Get metrics under the names of deployed nodes',
    tag: 'node',
    ...reads(),
    answers: { 200: MetricsView },
    deployed: { differs: 'what the node does not count is null' },
  },
  getMetrics: {
    method: 'GET',
    path: '/metrics',
    summary: 'Get metrics in the Prometheus format',
    tag: 'node',
    ...reads(),
    answers: { 200: text('the Prometheus text format, version 0.0.4') },
    deployed: { differs: 'also has the metrics of this node, under names of its own' },
  },
} as const satisfies Api;
