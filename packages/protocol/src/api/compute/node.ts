import { Reason } from '../../content/network.ts';
import { type Static, Type } from '../../type.ts';
import { NODE_PROOF_PATH, NodeProofView } from '../../views.ts';
import { type Api, NO_PARAMETERS, orNull, text } from '../operation.ts';

/** The shapes that deployed tools read. What deployed nodes do not say is optional. */

const Time = orNull(Type.String({ format: 'date-time' }));

export const ExecutionView = Type.Object(
  {
    networking: Type.Object({
      ipv4_network: orNull(Type.String()),
      host_ipv4: Type.Optional(orNull(Type.String({ description: 'the address of the mapped ports' }))),
      ipv6_network: orNull(Type.String()),
      ipv6_ip: orNull(Type.String()),
      ipv4_ip: orNull(Type.String()),
      mapped_ports: Type.Optional(
        Type.Record(
          Type.String(),
          Type.Object({ host: Type.Integer(), tcp: Type.Boolean(), udp: Type.Boolean() }),
          { description: 'ports of the instance that a port of the node leads to' },
        ),
      ),
    }),
    status: Type.Object({
      defined_at: Time,
      preparing_at: Time,
      prepared_at: Time,
      starting_at: Time,
      started_at: Time,
      stopping_at: Time,
      stopped_at: Time,
    }),
    running: orNull(Type.Boolean()),
    awaiting_confidential_init: Type.Optional(Type.Boolean()),
    vm_type: Type.Optional(Type.String()),
  },
  { title: 'Execution' },
);
export type ExecutionView = Static<typeof ExecutionView>;

export const RunningExecutionView = Type.Object(
  {
    networking: Type.Object({ ipv4: orNull(Type.String()), ipv6: orNull(Type.String()) }),
    vm_type: Type.Optional(Type.String()),
    awaiting_confidential_init: Type.Optional(Type.Boolean()),
  },
  { title: 'RunningExecution' },
);
export type RunningExecutionView = Static<typeof RunningExecutionView>;

export const NodeConfigView = Type.Object(
  {
    DOMAIN_NAME: Type.String(),
    node_hash: Type.Optional(Type.String({ description: 'id of the node' })),
    version: Type.String(),
    references: Type.Object({ API_SERVER: Type.String() }),
    security: Type.Record(Type.String(), Type.Unknown()),
    networking: Type.Record(Type.String(), Type.Unknown()),
    diagnostic_machine: Type.Optional(
      Type.Object({ ipv6: orNull(Type.String()), reason: orNull(Type.String()) }),
    ),
    computing: Type.Object(
      {
        ACCELERATOR: Type.Optional(
          orNull(Type.String(), { description: 'kvm or tcg; null while no machine was started' }),
        ),
        ACCELERATOR_REASON: Type.Optional(orNull(Type.String())),
        ENABLE_QEMU_SUPPORT: Type.Optional(Type.Boolean()),
        INSTANCE_DEFAULT_HYPERVISOR: Type.Optional(Type.String()),
        ENABLE_CONFIDENTIAL_COMPUTING: Type.Optional(Type.Boolean()),
        ENABLE_GPU_SUPPORT: Type.Optional(Type.Boolean()),
      },
      { description: 'what machines are run with' },
    ),
    reason: Type.Optional(orNull(Reason, { description: 'why the node has no capacity' })),
    programs: Type.Optional(
      Type.Object(
        {
          runtimes: Type.Array(Type.String()),
          reason: orNull(Type.String(), { description: 'why the node runs no programs' }),
        },
        { description: 'what programs are run with' },
      ),
    ),
    custom_domains: Type.Optional(
      Type.Object(
        {
          zone: orNull(Type.String(), {
            description: 'the zone that they point to; null where the node serves none',
          }),
        },
        { description: "owners' own domains" },
      ),
    ),
  },
  { title: 'NodeConfig' },
);
export type NodeConfigView = Static<typeof NodeConfigView>;

const Room = Type.Object(
  { total_kB: Type.Integer(), available_kB: Type.Integer() },
  { description: 'thousands of bytes' },
);
const processor = {
  architecture: Type.String(),
  vendor: orNull(Type.String()),
  features: Type.Array(Type.String(), { description: 'of sev, sev_es, sev_snp' }),
};
const Gpu = Type.Object({
  vendor: Type.String(),
  device_name: orNull(Type.String()),
  device_class: Type.String({ description: 'PCI class' }),
  device_id: Type.String(),
  pci_host: Type.String(),
});

export const UsageView = Type.Object(
  {
    cpu: Type.Object({
      count: Type.Integer(),
      load_average: Type.Object({ load1: Type.Number(), load5: Type.Number(), load15: Type.Number() }),
      core_frequencies: Type.Object(
        { min: orNull(Type.Number()), max: orNull(Type.Number()) },
        { description: 'MHz' },
      ),
    }),
    mem: Room,
    disk: Room,
    period: Type.Object({
      start_timestamp: Type.String({ format: 'date-time' }),
      duration_seconds: Type.Integer(),
    }),
    properties: Type.Object({ cpu: Type.Object(processor) }),
    gpu: Type.Object({ devices: Type.Array(Gpu), available_devices: Type.Array(Gpu) }),
    active: Type.Boolean(),
  },
  { title: 'Usage' },
);
export type UsageView = Static<typeof UsageView>;

export const CapabilityView = Type.Object(
  {
    cpu: Type.Object({
      ...processor,
      model: orNull(Type.String()),
      frequency: orNull(Type.Number(), { description: 'MHz' }),
      count: Type.Integer(),
    }),
    memory: Type.Object({
      size: Type.Integer(),
      units: Type.String(),
      type: orNull(Type.String()),
      clock: orNull(Type.Integer()),
      clock_units: orNull(Type.String()),
    }),
  },
  { title: 'Capability', description: 'what the kernel does not say is null' },
);
export type CapabilityView = Static<typeof CapabilityView>;

const WayOutView = Type.Object(
  { egress: Type.Boolean(), dns: Type.Boolean(), domain: Type.Boolean(), http: Type.Boolean() },
  { title: 'WayOut' },
);
const HostCheckView = Type.Object({ ipv4: WayOutView, ipv6: WayOutView }, { title: 'HostCheck' });

const Found = Type.Union([Type.Boolean(), Type.Literal('unknown')]);
export const DomainView = Type.Object(
  {
    name: Type.String(),
    owner: Type.String(),
    item_hash: Type.String({ description: 'the instance' }),
    active: Type.Boolean(),
    cname: Found,
    owner_proof: Found,
    rules: Type.Array(
      Type.Object({
        name: Type.Enum(['cname', 'owner_proof']),
        dns: Type.Object({ type: Type.String(), name: Type.String(), value: Type.String() }),
      }),
      { description: 'the DNS records that it needs' },
    ),
  },
  { title: 'Domain' },
);
export type DomainView = Static<typeof DomainView>;

const DomainRouteView = Type.Object(
  {
    name: Type.String(),
    item_hash: Type.String(),
    ipv6: Type.String(),
    ipv4: Type.Object({ public: orNull(Type.String()), local: orNull(Type.String()) }),
    proxy_protocol: Type.Optional(
      Type.Boolean({
        description:
          'whether TLS connections begin with a header of the PROXY protocol, version 2; no where left out',
      }),
    ),
  },
  { title: 'DomainRoute' },
);

const VersionQuery = Type.Object(
  {
    reference: Type.String({
      pattern: '^v?[0-9]+(\\.[0-9]+){0,3}',
      maxLength: 64,
      description: 'the version that is asked for',
    }),
  },
  { additionalProperties: false },
);

const node = { method: 'GET', rateClass: 'general', errors: [] } as const;

/** What a compute node says of itself, to everyone. */
export const NODE_API = {
  getLogin: {
    ...node,
    path: '/about/login',
    summary: 'Always returns 401, which monitors of deployed networks read as a sign of life',
    errors: ['SIGNATURE_REQUIRED'],
    answers: {
      401: Type.Object({
        success: Type.Literal(false),
        status: Type.Literal('error'),
        error: Type.String(),
        code: Type.Literal('SIGNATURE_REQUIRED'),
      }),
    },
    deployed: { differs: 'always 401: owners and schedulers sign instead of logging in' },
  },
  getUsage: {
    ...node,
    path: '/about/usage/system',
    summary: 'Get CPU, memory and disk usage',
    answers: { 200: UsageView },
    deployed: {},
  },
  getCapability: {
    ...node,
    path: '/about/capability',
    summary: 'Get the processor and memory of the server',
    answers: { 200: CapabilityView },
    deployed: {},
  },
  listRunningExecutions: {
    ...node,
    path: '/about/executions/list',
    summary: 'List running instances by id',
    query: NO_PARAMETERS,
    answers: { 200: Type.Record(Type.String(), RunningExecutionView) },
    deployed: {},
  },
  listExecutions: {
    ...node,
    path: '/v2/about/executions/list',
    summary: 'List all instances on this node by id',
    tag: 'about',
    query: NO_PARAMETERS,
    answers: { 200: Type.Record(Type.String(), ExecutionView) },
    deployed: {},
  },
  getNodeConfig: {
    ...node,
    path: '/status/config',
    summary: 'Get the configuration of the node',
    answers: { 200: NodeConfigView },
    deployed: {},
  },
  checkVersion: {
    ...node,
    path: '/status/check/version',
    summary: 'Check that the node is at least a given version; 403 if it is older',
    query: VersionQuery,
    answers: { 200: text('up to date'), 403: text('older') },
    deployed: {},
  },
  checkHost: {
    ...node,
    path: '/status/check/host',
    summary: 'Check that the node reaches the internet; 503 if not',
    answers: { 200: HostCheckView, 503: HostCheckView },
    deployed: {},
  },
  checkIpv6: {
    ...node,
    path: '/status/check/ipv6',
    summary: 'Check that the node and its instances have IPv6',
    answers: { 200: Type.Object({ host: Type.Boolean(), vm: Type.Boolean() }) },
  },
  listDomainRoutes: {
    ...node,
    path: '/domains/list',
    summary: 'List routed custom domains, for the gateway beside the node',
    query: NO_PARAMETERS,
    answers: { 200: Type.Array(DomainRouteView) },
  },
  listDomains: {
    ...node,
    path: '/domains/status',
    summary: 'List custom domains with the DNS records that were found',
    query: NO_PARAMETERS,
    answers: { 200: Type.Array(DomainView) },
  },
  getZone: {
    ...node,
    path: '/domains/zone',
    summary: 'Get the records of custom domains as zone file lines (RFC 1035, section 5)',
    query: NO_PARAMETERS,
    answers: { 200: text('resource records') },
  },
} as const satisfies Api;

/** How a node proves that its key answers here (node-proof.ts): at its URL, and at one address inside its /64. */
export const PROOF_API = {
  proveNode: {
    ...node,
    path: NODE_PROOF_PATH,
    summary: "A signature by the node's key over the challenge and this place",
    query: Type.Object(
      {
        challenge: Type.String({ maxLength: 64, description: '64 lower-case hexadecimal digits' }),
      },
      { additionalProperties: false },
    ),
    answers: { 200: NodeProofView },
  },
} as const satisfies Api;
