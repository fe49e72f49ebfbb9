import { Readable } from 'node:stream';
import { answer, frontHandlers, type Handlers, type RateLimitOptions, referenceHandlers } from '@skerry/kit';
import { AppError, parseItemHash } from '@skerry/protocol';
import { SCHEDULER_API } from '@skerry/protocol/api/scheduler';
import type { Snapshot } from '../controller.ts';
import { type StatusInput, statusView } from './status.ts';
import { allocationView, explanationView, NOTHING_CHOSEN, nodesView, periodView, planText } from './wire.ts';

export interface RouteSource {
  /** Throws UPSTREAM_UNAVAILABLE where there is no plan yet. */
  readonly snapshot: () => Snapshot;
  readonly status: () => StatusInput;
  readonly periodSeconds: number;
}

export const INFO = {
  title: 'Skerry scheduler',
  description: `Which compute node runs which instance, and why. Reading requires no credential.\nEvery error is \`{error, status: "error", code}\`.`,
};

/** For whoever asks for the document: a scheduler that is not asked for it does without. */
export const readExamples = async () =>
  (await import('@skerry/protocol/api/examples/scheduler')).SCHEDULER_EXAMPLES;

function findPlacement({ planner }: Snapshot, hash: string) {
  const placement = planner.get(hash);
  if (!placement) throw new AppError('ALLOCATION_NOT_FOUND', 'no instance with this hash is known');
  return placement;
}

export function handlersOf(
  { snapshot, status, periodSeconds }: RouteSource,
  { perMinute }: RateLimitOptions,
): Handlers<typeof SCHEDULER_API> {
  return {
    getPlan({ reply }) {
      const now = snapshot();
      const text = planText(now, periodView(now.checkedAtMs, periodSeconds));
      return reply.type('application/json').send(Readable.from(text));
    },
    listNodes: () => nodesView(snapshot()),
    getAllocation({ params }) {
      const hash = parseItemHash(params.vm_hash);
      const now = snapshot();
      const placement = findPlacement(now, hash);
      const { nodeId, reason } = placement;
      if (nodeId === null)
        throw new AppError(
          'ALLOCATION_NOT_FOUND',
          reason ? `no node was chosen: ${reason.message}` : NOTHING_CHOSEN,
          { details: { reason } },
        );
      const period = periodView(now.checkedAtMs, periodSeconds);
      return allocationView(hash, { ...placement, nodeId }, now.view, period);
    },
    explainPlacement({ params, query }) {
      const hash = parseItemHash(params.vm_hash);
      const now = snapshot();
      return explanationView(now, hash, findPlacement(now, hash), query.candidates);
    },
    simulatePlacement({ query }) {
      const { planner } = snapshot();
      const found = planner.simulate({ cpu: query.vcpus, memoryMib: query.memory, diskGib: query.disk });
      if ('load' in found) return { schedulable: true, reasons: [], node_id: found.load.node.nodeId };
      const { code, message } = found.reason;
      return answer(503, { schedulable: false, reasons: [message], code });
    },
    getSchedulerStatus: () => statusView(status()),
    ...frontHandlers(SCHEDULER_API, INFO),
    ...referenceHandlers(SCHEDULER_API, INFO, perMinute, readExamples),
  };
}
