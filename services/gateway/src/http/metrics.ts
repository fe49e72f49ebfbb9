import { createMetrics, type Metrics } from '@skerry/kit';
import { type Figure, QUIC_FIGURES, TLS_FIGURES } from '../dataplane/figures.ts';
import type { DataPlane } from '../dataplane/port.ts';
import type { Routing } from '../sync/routing.ts';

export interface MetricsSources {
  readonly plane: Pick<DataPlane, 'stats'>;
  readonly planeName: string;
  readonly routing: { readonly table: Pick<Routing['table'], 'instanceCount' | 'routeCount'> } & Pick<
    Routing,
    'lastSyncTime'
  >;
}

const PREFIX = 'skerry_gateway_';

/** What the gateway counts. Labels are of closed sets: no host name is one. */
export async function createGatewayMetrics(sources: MetricsSources): Promise<Metrics> {
  const metrics = await createMetrics({ service: 'gateway', isProcess: false });
  watchRouting(metrics, sources);
  watchTls(metrics, sources.plane);
  watchQuic(metrics, sources.plane);
  watchHttp(metrics, sources.plane);
  watchHttpRefusals(metrics, sources.plane);
  return metrics;
}

function watchRouting(metrics: Metrics, { planeName, routing }: MetricsSources): void {
  const info = [{ labels: { data_plane: planeName }, value: 1 }];
  metrics.watch(`${PREFIX}info`, 'The data plane that serves.', () => info, ['data_plane']);
  metrics.watch(`${PREFIX}instances`, 'Instances that the gateway knows.', () => routing.table.instanceCount);
  metrics.watch(`${PREFIX}routes`, 'Of these, the routed ones.', () => routing.table.routeCount);
  metrics.watch(
    `${PREFIX}last_sync_time_seconds`,
    'Unix time of the last sync or event.',
    () => routing.lastSyncTime,
  );
}

function watchFigures<Name extends string>(
  metrics: Metrics,
  figuresByName: Readonly<Record<Name, Figure>>,
  readCounts: () => Promise<Readonly<Record<Name, number>>>,
): void {
  const figures = Object.entries(figuresByName) as [Name, Figure][];
  for (const [metric, rows] of Map.groupBy(figures, ([, figure]) => figure.metric)) {
    const { type, help, labels = {} } = rows[0]![1];
    const read = async () => {
      const counts = await readCounts();
      return rows.map(([name, figure]) => ({ labels: figure.labels ?? {}, value: counts[name] }));
    };
    const watch = type === 'gauge' ? metrics.watch : metrics.watchCounter;
    watch(PREFIX + metric, help, read, Object.keys(labels));
  }
}

function watchQuic(metrics: Metrics, plane: MetricsSources['plane']): void {
  watchFigures(metrics, QUIC_FIGURES, async () => (await plane.stats()).quic.figures);
  metrics.watchCounter(
    `${PREFIX}quic_connections_total`,
    'QUIC connections by what became of them, and datagrams that belong to none (stray).',
    async () =>
      Object.entries((await plane.stats()).quic.outcomes).map(([outcome, value]) => ({
        labels: { outcome },
        value,
      })),
    ['outcome'],
  );
}

function watchTls(metrics: Metrics, plane: MetricsSources['plane']): void {
  watchFigures(metrics, TLS_FIGURES, async () => (await plane.stats()).tls.figures);
  metrics.watchCounter(
    `${PREFIX}tls_connections_total`,
    'TLS connections by what became of them.',
    async () =>
      Object.entries((await plane.stats()).tls.outcomes).map(([outcome, value]) => ({
        labels: { outcome },
        value,
      })),
    ['outcome'],
  );
}

function watchHttpRefusals(metrics: Metrics, plane: MetricsSources['plane']): void {
  metrics.watchCounter(
    `${PREFIX}http_refused_total`,
    'HTTP requests, and connections that never came to one, that the gateway refused, by the reason.',
    async () =>
      Object.entries((await plane.stats()).httpRefusals).map(([reason, value]) => ({
        labels: { reason },
        value,
      })),
    ['reason'],
  );
}

function watchHttp(metrics: Metrics, plane: MetricsSources['plane']): void {
  metrics.watch(
    `${PREFIX}http_stalled_bytes`,
    'Memory of the kernel that holds what slow receivers of plain HTTP have not taken; 0 while TCP has little.',
    async () => (await plane.stats()).httpStalledBytes,
  );
  metrics.watch(
    `${PREFIX}http_open_connections`,
    'HTTP connections that are open.',
    async () => (await plane.stats()).httpOpen,
  );
  metrics.watchCounter(
    `${PREFIX}http_yielded_total`,
    'HTTP connections, and requests of HTTP/2, that ended where all places were taken, for a client that had none.',
    async () => (await plane.stats()).httpYielded,
  );
  metrics.watchCounter(
    `${PREFIX}http_requests_total`,
    'HTTP requests that are over, by how they came and what became of them.',
    async () =>
      Object.entries((await plane.stats()).httpCounts).flatMap(([kind, outcomes]) =>
        Object.entries(outcomes).map(([outcome, value]) => ({ labels: { class: kind, outcome }, value })),
      ),
    ['class', 'outcome'],
  );
}
