import { LIMITS } from '../limits.ts';
import { HASH64_PATTERN } from '../network-form/item-hash.ts';
import { type Static, Type } from '../type.ts';
import { type Api, defaulted, NO_PARAMETERS, orNull } from './operation.ts';
import { FRONT_API, REFERENCE_API } from './reference.ts';

/** The shapes of answers. Those of the deployed scheduler's v0 interface keep its fields; our own stand beside them. */

const Hash = Type.String({ pattern: HASH64_PATTERN });

export const ReasonView = Type.Object({ code: Type.String(), message: Type.String() }, { title: 'Reason' });
export type ReasonView = Static<typeof ReasonView>;

export const PeriodView = Type.Object(
  {
    start_timestamp: Type.String({
      format: 'date-time',
      description:
        'when the plan was last known to hold; old means that the scheduler no longer follows the network',
    }),
    duration_seconds: Type.Number(),
  },
  { title: 'Period' },
);
export type PeriodView = Static<typeof PeriodView>;

export const ResourcesView = Type.Object(
  {
    cpu: Type.Integer({ description: 'virtual cores' }),
    memory_mib: Type.Integer(),
    disk_gib: Type.Integer(),
  },
  { title: 'Resources' },
);
export type ResourcesView = Static<typeof ResourcesView>;

const nodeRef = {
  node_id: Hash,
  url: orNull(Type.String()),
  ipv6: orNull(Type.String({ description: 'the /64 that instances get addresses from' })),
  supports_ipv6: Type.Boolean(),
};
export const NodeRefView = Type.Object(nodeRef, { title: 'NodeRef' });
export type NodeRefView = Static<typeof NodeRefView>;

const Hashes = Type.Array(Hash);
const PlanView = Type.Object(
  {
    period: PeriodView,
    plan: Type.Record(
      Type.String(),
      Type.Object({ persistent_vms: Hashes, instances: Hashes, on_demand_vms: Hashes, jobs: Hashes }),
      { description: 'by node id' },
    ),
    waiting: Type.Array(Type.Object({ vm_hash: Hash, reason: orNull(ReasonView) }), {
      description: 'instances without a node, in the order they are served',
    }),
  },
  { title: 'Plan' },
);

export const NodeView = Type.Object(
  {
    ...nodeRef,
    address: Type.String(),
    version: Type.String(),
    features: Type.Array(Type.String()),
    capacity: Type.Object(ResourcesView.properties, { description: 'what the node announces' }),
    limits: Type.Object(ResourcesView.properties, {
      description: 'the part of what counts that may be allocated',
    }),
    used: ResourcesView,
    free: ResourcesView,
    instances: Type.Integer(),
    healthy: Type.Boolean({ description: 'whether it receives new instances' }),
    reason: orNull(ReasonView),
    leaving: orNull(ReasonView, { description: 'why its instances are moved elsewhere' }),
    wrong_since_ms: Type.Optional(
      orNull(Type.Integer(), {
        description:
          'since when this scheduler saw that it receives no new instances or is left, Unix milliseconds',
      }),
    ),
    trust: Type.String({
      description: 'how far the scheduler trusts the node, and how much of its capacity counts',
    }),
    score: orNull(Type.Number({ description: '0 to 1, as published' })),
    weight: Type.Number({ description: 'its rank value; higher is preferred' }),
    announced_at: Type.Integer({ description: 'Unix seconds' }),
  },
  { title: 'Node' },
);
export type NodeView = Static<typeof NodeView>;
const NodesView = Type.Object({ nodes: Type.Array(NodeView) }, { title: 'Nodes' });

export const AllocationView = Type.Object(
  {
    vm_hash: Hash,
    vm_type: Type.Literal('instance'),
    vm_ipv6: orNull(Type.String()),
    period: PeriodView,
    node: NodeRefView,
    reason: orNull(ReasonView),
  },
  { title: 'Allocation' },
);

const SimulationView = Type.Object(
  {
    schedulable: Type.Boolean(),
    reasons: Type.Array(Type.String()),
    node_id: Type.Optional(Hash),
    code: Type.Optional(Type.String()),
  },
  { title: 'Simulation' },
);

export const CandidateView = Type.Object(
  {
    node_id: Hash,
    has_room: Type.Boolean(),
    weight: Type.Number({ description: 'free_share × (1 + score) / 2' }),
    free_share: Type.Number({ description: 'the smallest free part of its cores, memory and disk' }),
    score: orNull(Type.Number()),
    free: ResourcesView,
    trust: Type.String({ description: 'how far the scheduler trusts the node' }),
    against: orNull(ReasonView),
  },
  { title: 'Candidate' },
);

const DecisionView = Type.Object(
  {
    decided_at: Type.String({ format: 'date-time' }),
    kind: Type.Enum(['placed', 'moved', 'readdressed', 'refused']),
    from: orNull(Hash),
    node_id: orNull(Hash),
    ipv6: Type.String(),
    reason: orNull(ReasonView),
  },
  { title: 'Decision' },
);

export const ExplanationView = Type.Object(
  {
    vm_hash: Hash,
    needs: ResourcesView,
    created_at: Type.Integer({ description: 'Unix seconds; the older is served first' }),
    node_id: orNull(Hash),
    vm_ipv6: orNull(Type.String()),
    verdict: Type.Object({
      code: Type.Enum(['STAYS', 'LEAVES', 'WAITS', 'FOREIGN']),
      message: Type.String(),
    }),
    decisions: Type.Array(DecisionView, {
      description: 'the most recent ones since this scheduler started, oldest first',
    }),
    nodes: Type.Record(Type.String(), Type.Integer(), {
      description: 'how many nodes have room (FITS), and why the others were ruled out',
    }),
    candidates: Type.Array(CandidateView, {
      description: 'in order of preference: where it would go if it had no node yet',
    }),
  },
  { title: 'Explanation' },
);

const Role = Type.Enum(['leader', 'standby']);
export const SchedulerStatusView = Type.Object(
  {
    status: Type.Enum(['ok', 'degraded']),
    reasons: Type.Array(Type.String()),
    problems: Type.Optional(
      Type.Array(
        Type.Object({
          code: Type.String({ description: 'of the kind of problem' }),
          message: Type.String(),
          since_ms: Type.Integer({ description: 'since when this scheduler saw it, Unix milliseconds' }),
        }),
        { description: 'the same, with times' },
      ),
    ),
    address: Type.String({ description: 'the address the core node must trust' }),
    leadership: Type.Object({
      role: Role,
      since_ms: Type.Integer(),
      can_lead: Type.Boolean(),
      peers: Type.Array(
        Type.Object({
          url: Type.String(),
          role: orNull(Role),
          address: orNull(Type.String()),
          seen_at_ms: orNull(Type.Integer()),
        }),
      ),
    }),
    nodes: Type.Object({ total: Type.Integer(), healthy: Type.Integer() }),
    instances: Type.Object({
      total: Type.Integer(),
      placed: Type.Integer(),
      waiting: Type.Integer(),
      leaving: Type.Integer({
        description: 'instances on nodes they should leave, while no other node has room',
      }),
    }),
  },
  { title: 'Status' },
);
export type SchedulerStatusView = Static<typeof SchedulerStatusView>;

const VmHashParams = Type.Object({
  vm_hash: Type.String({ description: 'item hash of the INSTANCE message' }),
});

const SimulateQuery = Type.Object(
  {
    vcpus: Type.Integer({ minimum: 1, maximum: LIMITS.instanceCpuMax, description: 'virtual cores' }),
    memory: Type.Integer({ minimum: 1, maximum: LIMITS.instanceMemoryMibMax, description: 'MiB' }),
    disk: Type.Integer({ minimum: 1, maximum: LIMITS.instanceDiskGibMax, description: 'GiB' }),
  },
  { additionalProperties: false },
);

const CANDIDATES_MAX = 100;
const ExplainQuery = Type.Object(
  {
    candidates: defaulted(
      Type.Integer({
        minimum: 0,
        maximum: CANDIDATES_MAX,
        description: 'how many nodes are shown as candidates',
      }),
      10,
    ),
  },
  { additionalProperties: false },
);

/** What a scheduler answers. Reading is for everyone and needs no credential. */
export const SCHEDULER_API = {
  getPlan: {
    method: 'GET',
    path: '/api/v0/plan',
    rateClass: 'general',
    summary: 'List every node with the instances it should run',
    query: NO_PARAMETERS,
    answers: { 200: PlanView },
    errors: ['UPSTREAM_UNAVAILABLE'],
  },
  listNodes: {
    method: 'GET',
    path: '/api/v0/nodes',
    rateClass: 'general',
    summary: 'List compute nodes with their capacity, and why they receive no new instances',
    query: NO_PARAMETERS,
    answers: { 200: NodesView },
    errors: ['UPSTREAM_UNAVAILABLE'],
  },
  getAllocation: {
    method: 'GET',
    path: '/api/v0/allocation/:vm_hash',
    rateClass: 'general',
    summary: 'Find the node of an instance',
    params: VmHashParams,
    query: NO_PARAMETERS,
    answers: { 200: AllocationView },
    errors: ['UPSTREAM_UNAVAILABLE', 'INVALID_HASH', 'ALLOCATION_NOT_FOUND'],
  },
  explainPlacement: {
    method: 'GET',
    path: '/api/v0/explain/:vm_hash',
    rateClass: 'general',
    summary: 'Explain why an instance is where it is, and how every node compares',
    params: VmHashParams,
    query: ExplainQuery,
    answers: { 200: ExplanationView },
    errors: ['UPSTREAM_UNAVAILABLE', 'INVALID_HASH', 'ALLOCATION_NOT_FOUND'],
  },
  simulatePlacement: {
    method: 'GET',
    path: '/api/v0/simulate',
    rateClass: 'general',
    summary: 'Check whether an instance of a given size could be placed now; 503 if not',
    query: SimulateQuery,
    answers: { 200: SimulationView, 503: SimulationView },
    errors: ['UPSTREAM_UNAVAILABLE'],
  },
  getSchedulerStatus: {
    method: 'GET',
    path: '/status',
    rateClass: 'general',
    summary: 'Get the problems of the scheduler and which scheduler leads',
    answers: { 200: SchedulerStatusView },
    errors: [],
  },
  ...FRONT_API,
  ...REFERENCE_API,
} as const satisfies Api;
