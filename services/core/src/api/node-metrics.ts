import type { Handlers } from '@skerry/kit';
import { AppError, type NodeKind, parseItemHash } from '@skerry/protocol';
import type { MEASUREMENTS_API } from '@skerry/protocol/api/core/measurements';
import { readNodeHistory, readNodeMetrics, windowOf } from '../state/measurements/node-metrics.ts';
import type { Rooms } from './rooms.ts';

/** A year of one node, measured by five monitors every hour. */
const ROWS_MAX = 50_000;
const SORT_DESCENDING = ['desc', 'descending', '-1'];

/** What trusted monitors measured of one node (specification, "Node metrics lookup"; docs/decisions.md 10). */
export function nodeMetricsHandlers({
  db,
  longLists,
  now,
}: Pick<Rooms, 'db' | 'longLists' | 'now'>): Handlers<typeof MEASUREMENTS_API> {
  const handlerOf =
    (kind: NodeKind): Handlers<typeof MEASUREMENTS_API>['getCoreMeasurements'] =>
    async ({ params, query, reply }) => {
      const nodeId = parseItemHash(params.node_hash);
      const nowSeconds = now() / 1000;
      const window = windowOf(query.start_date, query.end_date, nowSeconds);
      const found = await readNodeMetrics(longLists.askedIn(db, reply), kind, nodeId, window, {
        nowSeconds,
        form: query.format === 'rows' ? 'rows' : 'columns',
        isNewestFirst: SORT_DESCENDING.includes(query.sort.toLowerCase()),
        limit: ROWS_MAX + 1,
      });
      if (found.measurements === 0)
        throw new AppError('NODE_NOT_FOUND', `there are no measurements of the ${kind} node ${nodeId} then`);
      if (found.measurements > ROWS_MAX)
        throw new AppError(
          'INVALID_PARAMETERS',
          `more than ${ROWS_MAX} measurements: ask for a shorter time`,
        );
      return reply.type('application/json; charset=utf-8').send(`{"metrics":${found.json}}`);
    };
  const historyOf =
    (kind: NodeKind): Handlers<typeof MEASUREMENTS_API>['getCoreHistory'] =>
    async ({ params, query: { step, count }, reply }) => {
      const nodeId = parseItemHash(params.node_hash);
      const from = (Math.floor(now() / 1000 / step) - count + 1) * step;
      const parts = await readNodeHistory(longLists.askedIn(db, reply), kind, nodeId, { from, step });
      if (parts.length === 0)
        throw new AppError('NODE_NOT_FOUND', `there are no measurements of the ${kind} node ${nodeId} then`);
      return {
        step,
        from,
        history: parts.map((part) => ({ ...part, versions: [...(part.versions ?? [])] })),
      };
    };
  return {
    getCoreMeasurements: handlerOf('core'),
    getComputeMeasurements: handlerOf('compute'),
    getCoreHistory: historyOf('core'),
    getComputeHistory: historyOf('compute'),
  };
}
