import Type, { type Static } from 'typebox';

/** The shapes of answers. Those of the deployed scheduler's v0 interface keep its fields; our own stand beside them. */

const nullable = <T extends Type.TSchema>(schema: T) => Type.Union([schema, Type.Null()]);
const Hash = Type.String({ pattern: '^[0-9a-f]{64}$' });

export const ReasonView = Type.Object({ code: Type.String(), message: Type.String() });

export const PeriodView = Type.Object({
  start_timestamp: Type.String({
    format: 'date-time',
    description:
      'when the plan was last known to hold; old means that the scheduler no longer follows the network',
  }),
  duration_seconds: Type.Number(),
});
export type PeriodView = Static<typeof PeriodView>;

export const ResourcesView = Type.Object({
  cpu: Type.Integer({ description: 'virtual cores' }),
  memory_mib: Type.Integer(),
  disk_gib: Type.Integer(),
});
export type ResourcesView = Static<typeof ResourcesView>;

const nodeRef = {
  node_id: Hash,
  url: nullable(Type.String()),
  ipv6: nullable(Type.String({ description: 'the /64 that instances get addresses from' })),
  supports_ipv6: Type.Boolean(),
};
export const NodeRefView = Type.Object(nodeRef);
export type NodeRefView = Static<typeof NodeRefView>;

const Hashes = Type.Array(Hash);
export const PlanView = Type.Object({
  period: PeriodView,
  plan: Type.Record(
    Type.String(),
    Type.Object({ persistent_vms: Hashes, instances: Hashes, on_demand_vms: Hashes, jobs: Hashes }),
    { description: 'by node id' },
  ),
  waiting: Type.Array(Type.Object({ vm_hash: Hash, reason: nullable(ReasonView) }), {
    description: 'those without a node, in the order in which they are served',
  }),
});

export const NodeView = Type.Object({
  ...nodeRef,
  address: Type.String(),
  version: Type.String(),
  features: Type.Array(Type.String()),
  capacity: Type.Object(ResourcesView.properties, { description: 'what the node announces' }),
  limits: Type.Object(ResourcesView.properties, { description: 'what may be promised: of what counts' }),
  used: ResourcesView,
  free: ResourcesView,
  instances: Type.Integer(),
  healthy: Type.Boolean({ description: 'whether it gets something new' }),
  reason: nullable(ReasonView),
  leaving: Type.Union([ReasonView, Type.Null()], { description: 'why what it holds goes elsewhere' }),
  trust: Type.String({ description: 'how far the node is believed, and how much of its room counts' }),
  score: nullable(Type.Number({ description: '0 to 1, as published' })),
  weight: Type.Number({ description: 'how much it is preferred' }),
  announced_at: Type.Integer({ description: 'Unix seconds' }),
});
export type NodeView = Static<typeof NodeView>;
export const NodesView = Type.Object({ nodes: Type.Array(NodeView) });

export const AllocationView = Type.Object({
  vm_hash: Hash,
  vm_type: Type.Literal('instance'),
  vm_ipv6: nullable(Type.String()),
  period: PeriodView,
  node: NodeRefView,
  reason: nullable(ReasonView),
});

export const SimulationView = Type.Object({
  schedulable: Type.Boolean(),
  reasons: Type.Array(Type.String()),
  node_id: Type.Optional(Hash),
  code: Type.Optional(Type.String()),
});

export const CandidateView = Type.Object({
  node_id: Hash,
  has_room: Type.Boolean(),
  weight: Type.Number({ description: 'free_share * (1 + score) / 2' }),
  free_share: Type.Number({ description: 'the smallest free part of its cores, memory and disk' }),
  score: nullable(Type.Number()),
  free: ResourcesView,
  trust: Type.String({ description: 'how far the node is believed' }),
  against: nullable(ReasonView),
});

export const DecisionView = Type.Object({
  decided_at: Type.String({ format: 'date-time' }),
  kind: Type.Enum(['placed', 'moved', 'readdressed', 'refused']),
  from: nullable(Hash),
  node_id: nullable(Hash),
  ipv6: Type.String(),
  reason: nullable(ReasonView),
});

export const ExplanationView = Type.Object({
  vm_hash: Hash,
  needs: ResourcesView,
  created_at: Type.Integer({ description: 'Unix seconds; the older is served first' }),
  node_id: nullable(Hash),
  vm_ipv6: nullable(Type.String()),
  verdict: Type.Object({ code: Type.Enum(['STAYS', 'LEAVES', 'WAITS', 'FOREIGN']), message: Type.String() }),
  decisions: Type.Array(DecisionView, {
    description: 'the last ones of this scheduler since its start, oldest first',
  }),
  nodes: Type.Record(Type.String(), Type.Integer(), {
    description: 'how many nodes have room (FITS), and what speaks against the others',
  }),
  candidates: Type.Array(CandidateView, {
    description: 'in the order of preference: where it would go if it had no node yet',
  }),
});

const Role = Type.Enum(['leader', 'standby']);
export const StatusView = Type.Object({
  status: Type.Enum(['ok', 'degraded']),
  reasons: Type.Array(Type.String()),
  address: Type.String({ description: 'whom the core node must trust' }),
  leadership: Type.Object({
    role: Role,
    since_ms: Type.Integer(),
    can_lead: Type.Boolean(),
    peers: Type.Array(
      Type.Object({
        url: Type.String(),
        role: nullable(Role),
        address: nullable(Type.String()),
        seen_at_ms: nullable(Type.Integer()),
      }),
    ),
  }),
  nodes: Type.Object({ total: Type.Integer(), healthy: Type.Integer() }),
  instances: Type.Object({
    total: Type.Integer(),
    placed: Type.Integer(),
    waiting: Type.Integer(),
    leaving: Type.Integer({ description: 'on nodes that they should leave, without another that has room' }),
  }),
});
