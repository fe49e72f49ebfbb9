import { Readable } from 'node:stream';
import type { HttpServer } from '@skerry/kit';
import { AppError, LIMITS, parseItemHash } from '@skerry/protocol';
import Type from 'typebox';
import type { Snapshot } from '../controller.ts';
import { type StatusInput, statusView } from './status.ts';
import { AllocationView, ExplanationView, NodesView, PlanView, SimulationView, StatusView } from './views.ts';
import { allocationView, explanationView, nodesView, periodView, planText } from './wire.ts';

export interface RouteSource {
  /** Throws UPSTREAM_UNAVAILABLE where there is no plan yet. */
  readonly snapshot: () => Snapshot;
  readonly status: () => StatusInput;
  readonly periodSeconds: number;
}

const VmHashParams = Type.Object({
  vm_hash: Type.String({ description: 'item hash of the INSTANCE message' }),
});

const SimulateQuery = Type.Object({
  vcpus: Type.Integer({ minimum: 1, maximum: LIMITS.instanceCpuMax, description: 'virtual cores' }),
  memory: Type.Integer({ minimum: 1, maximum: LIMITS.instanceMemoryMibMax, description: 'MiB' }),
  disk: Type.Integer({ minimum: 1, maximum: LIMITS.instanceDiskGibMax, description: 'GiB' }),
});

const CANDIDATES_MAX = 100;
const ExplainQuery = Type.Object({
  candidates: Type.Integer({
    minimum: 0,
    maximum: CANDIDATES_MAX,
    default: 10,
    description: 'how many nodes are shown as candidates',
  }),
});

function addReads(app: HttpServer, { snapshot, periodSeconds }: RouteSource): void {
  app.get(
    '/api/v0/plan',
    {
      schema: { summary: 'Every node with what it is to run', response: { 200: PlanView } },
      config: { errors: ['UPSTREAM_UNAVAILABLE'] },
    },
    async (_request, reply) => {
      const now = snapshot();
      const text = planText(now, periodView(now.checkedAtMs, periodSeconds));
      return reply.type('application/json').send(Readable.from(text) as never);
    },
  );

  app.get(
    '/api/v0/nodes',
    {
      schema: {
        summary: 'The compute nodes: what they have, and why they get nothing new',
        response: { 200: NodesView },
      },
      config: { errors: ['UPSTREAM_UNAVAILABLE'] },
    },
    () => nodesView(snapshot()),
  );

  app.get(
    '/api/v0/allocation/:vm_hash',
    {
      schema: {
        summary: 'Where a virtual machine is to run',
        params: VmHashParams,
        response: { 200: AllocationView },
      },
      config: { errors: ['UPSTREAM_UNAVAILABLE', 'INVALID_HASH', 'ALLOCATION_NOT_FOUND'] },
    },
    ({ params }) => {
      const hash = parseItemHash(params.vm_hash);
      const { planner, view, checkedAtMs } = snapshot();
      const placement = planner.get(hash);
      if (!placement) throw new AppError('ALLOCATION_NOT_FOUND', 'no virtual machine of this hash is known');
      const { nodeId, reason } = placement;
      if (nodeId === null)
        throw new AppError('ALLOCATION_NOT_FOUND', `no node was chosen: ${reason?.message}`, {
          details: { reason },
        });
      return allocationView(hash, { ...placement, nodeId }, view, periodView(checkedAtMs, periodSeconds));
    },
  );
}

function addQuestions(app: HttpServer, { snapshot }: RouteSource): void {
  app.get(
    '/api/v0/explain/:vm_hash',
    {
      schema: {
        summary: 'Why a virtual machine is where it is, and how every node stands to it',
        params: VmHashParams,
        querystring: ExplainQuery,
        response: { 200: ExplanationView },
      },
      config: { errors: ['UPSTREAM_UNAVAILABLE', 'INVALID_HASH', 'ALLOCATION_NOT_FOUND'] },
    },
    ({ params, query }) => {
      const hash = parseItemHash(params.vm_hash);
      const now = snapshot();
      const placement = now.planner.get(hash);
      if (!placement) throw new AppError('ALLOCATION_NOT_FOUND', 'no virtual machine of this hash is known');
      return explanationView(now, hash, placement, query.candidates);
    },
  );

  app.get(
    '/api/v0/simulate',
    {
      schema: {
        summary: 'Whether something of this size could be placed now; 503 where not',
        querystring: SimulateQuery,
        response: { 200: SimulationView, 503: SimulationView },
      },
      config: { errors: ['UPSTREAM_UNAVAILABLE'] },
    },
    async ({ query }, reply) => {
      const { planner } = snapshot();
      const found = planner.simulate({ cpu: query.vcpus, memoryMib: query.memory, diskGib: query.disk });
      if ('load' in found) return { schedulable: true, reasons: [], node_id: found.load.node.nodeId };
      const { code, message } = found.reason;
      return reply.status(503).send({ schedulable: false, reasons: [message], code });
    },
  );
}

/** Reading is for everyone and needs no credential. */
export function addRoutes(app: HttpServer, source: RouteSource): void {
  addReads(app, source);
  addQuestions(app, source);
  app.get(
    '/status',
    { schema: { summary: 'What is not in order, and who leads', response: { 200: StatusView } } },
    () => statusView(source.status()),
  );
}
