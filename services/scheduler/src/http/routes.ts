import type { HttpServer } from '@skerry/kit';
import { AppError, LIMITS, parseItemHash } from '@skerry/protocol';
import Type from 'typebox';
import { chooseNode } from '../choose.ts';
import type { Snapshot } from '../controller.ts';
import { explainShortage } from '../shortage.ts';
import { type StatusInput, statusView } from './status.ts';
import { allocationView, nodesView, periodView, planView } from './wire.ts';

export interface RouteSource {
  /** Throws UPSTREAM_UNAVAILABLE where there is no plan yet. */
  readonly snapshot: () => Snapshot;
  readonly status: () => StatusInput;
  readonly periodSeconds: number;
}

const VmHashParams = Type.Object({ vm_hash: Type.String() });

const SimulateQuery = Type.Object({
  vcpus: Type.Integer({ minimum: 1, maximum: LIMITS.instanceCpuMax, description: 'virtual cores' }),
  memory: Type.Integer({ minimum: 1, maximum: LIMITS.instanceMemoryMibMax, description: 'MiB' }),
  disk: Type.Integer({ minimum: 1, maximum: LIMITS.instanceDiskGibMax, description: 'GiB' }),
});

/** Reading is for everyone and needs no credential. */
export function addRoutes(app: HttpServer, source: RouteSource): void {
  const { snapshot, status, periodSeconds } = source;

  app.get('/api/v0/plan', () => {
    const { plan, checkedAtMs } = snapshot();
    return planView(plan, periodView(checkedAtMs, periodSeconds));
  });

  app.get('/api/v0/nodes', () => {
    const { plan, view } = snapshot();
    return nodesView(plan, view);
  });

  app.get('/api/v0/allocation/:vm_hash', { schema: { params: VmHashParams } }, ({ params }) => {
    const hash = parseItemHash(params.vm_hash);
    const { plan, view, checkedAtMs } = snapshot();
    const placement = plan.placements.get(hash);
    if (!placement) throw new AppError('ALLOCATION_NOT_FOUND', 'no virtual machine of this hash is known');
    const { nodeId, reason } = placement;
    if (nodeId === null)
      throw new AppError('ALLOCATION_NOT_FOUND', `no node was chosen: ${reason?.message}`, {
        details: { reason },
      });
    return allocationView(hash, { ...placement, nodeId }, view, periodView(checkedAtMs, periodSeconds));
  });

  app.get('/api/v0/simulate', { schema: { querystring: SimulateQuery } }, ({ query }, reply) => {
    const { plan } = snapshot();
    const needs = { cpu: query.vcpus, memoryMib: query.memory, diskGib: query.disk };
    const load = chooseNode(plan.loads.values(), needs);
    if (load) return { schedulable: true, reasons: [], node_id: load.node.nodeId };
    const reason = explainShortage(plan.loads.values(), needs);
    return reply.status(503).send({ schedulable: false, reasons: [reason.message], code: reason.code });
  });

  app.get('/status', () => statusView(status()));
}
