import type { DataPlaneStats } from '../dataplane/port.ts';
import type { Routing } from '../sync/routing.ts';

interface Metric {
  readonly name: string;
  readonly type: 'counter' | 'gauge';
  readonly help: string;
  readonly values: readonly (readonly [labels: string, value: number])[];
}

const one = (name: string, type: Metric['type'], help: string, value: number): Metric => ({
  name,
  type,
  help,
  values: [['', value]],
});

/** The gateway's figures in the text format of Prometheus. Labels are of closed sets: no host name is one. */
export function renderMetrics(stats: DataPlaneStats, routing: Routing, plane: string): string {
  const { table, lastSyncTime } = routing;
  const outcomes = Object.entries(stats.tlsOutcomes).map(
    ([outcome, count]) => [`{outcome="${outcome}"}`, count] as const,
  );
  const metrics: Metric[] = [
    {
      name: 'skerry_gateway_info',
      type: 'gauge',
      help: 'The data plane that serves.',
      values: [[`{data_plane="${plane}"}`, 1]],
    },
    one('skerry_gateway_instances', 'gauge', 'Instances that the gateway knows.', table.instanceCount),
    one('skerry_gateway_routes', 'gauge', 'Of these, the routed ones.', table.routeCount),
    one(
      'skerry_gateway_last_sync_time_seconds',
      'gauge',
      'Unix time of the last sync or event.',
      lastSyncTime,
    ),
    one('skerry_gateway_tls_open_connections', 'gauge', 'TLS connections that are open.', stats.tlsOpen),
    {
      name: 'skerry_gateway_tls_connections_total',
      type: 'counter',
      help: 'TLS connections by what became of them.',
      values: outcomes,
    },
    {
      name: 'skerry_gateway_tls_bytes_total',
      type: 'counter',
      help: 'Bytes of TLS connections that have ended.',
      values: [
        ['{direction="to_instances"}', stats.tlsBytesToInstances],
        ['{direction="to_clients"}', stats.tlsBytesToClients],
      ],
    },
    one('skerry_gateway_http_open_connections', 'gauge', 'HTTP connections that are open.', stats.httpOpen),
    {
      name: 'skerry_gateway_http_requests_total',
      type: 'counter',
      help: 'HTTP requests that are over, by how they came and what became of them.',
      values: Object.entries(stats.httpCounts).flatMap(([kind, outcomes]) =>
        Object.entries(outcomes).map(
          ([outcome, count]) => [`{class="${kind}",outcome="${outcome}"}`, count] as const,
        ),
      ),
    },
  ];
  return metrics
    .flatMap(({ name, type, help, values }) => [
      `# HELP ${name} ${help}`,
      `# TYPE ${name} ${type}`,
      ...values.map(([labels, value]) => `${name}${labels} ${value}`),
    ])
    .join('\n')
    .concat('\n');
}
