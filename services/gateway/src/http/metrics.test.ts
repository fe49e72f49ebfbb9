import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  newTlsCounts,
  noQuicCounts,
  QUIC_FIGURES,
  QUIC_OUTCOMES,
  TLS_FIGURES,
  TLS_OUTCOMES,
} from '../dataplane/figures.ts';
import {
  HTTP_CLASSES,
  HTTP_OUTCOMES,
  HTTP_REFUSALS,
  type HttpCounts,
  type HttpRefusal,
} from '../dataplane/port.ts';
import { createGatewayMetrics } from './metrics.ts';

/** What monitoring is built on: these names do not change. */
const METRICS = {
  skerry_build_info: 'gauge',
  skerry_gateway_info: 'gauge',
  skerry_gateway_instances: 'gauge',
  skerry_gateway_routes: 'gauge',
  skerry_gateway_last_sync_time_seconds: 'gauge',
  skerry_gateway_tls_open_connections: 'gauge',
  skerry_gateway_tls_bytes_total: 'counter',
  skerry_gateway_tls_connections_total: 'counter',
  skerry_gateway_tls_yielded_connections_total: 'counter',
  skerry_gateway_tls_stalled_bytes: 'gauge',
  skerry_gateway_quic_open_flows: 'gauge',
  skerry_gateway_quic_bytes_total: 'counter',
  skerry_gateway_quic_dropped_datagrams_total: 'counter',
  skerry_gateway_quic_connections_total: 'counter',
  skerry_gateway_quic_yielded_flows_total: 'counter',
  skerry_gateway_http_open_connections: 'gauge',
  skerry_gateway_http_requests_total: 'counter',
  skerry_gateway_http_yielded_total: 'counter',
  skerry_gateway_http_refused_total: 'counter',
};

test('every figure of the gateway is told under its name, with labels of closed sets', async () => {
  const tls = newTlsCounts();
  tls.figures.open = 3;
  tls.figures.bytesToInstances = 1_000;
  tls.figures.bytesToClients = 2_000;
  tls.figures.yielded = 11;
  tls.figures.stalledBytes = 9;
  for (const [index, outcome] of TLS_OUTCOMES.entries()) tls.outcomes[outcome] = 10 + index;
  const quic = {
    figures: {
      quicOpen: 6,
      quicBytesToInstances: 3_000,
      quicBytesToClients: 4_000,
      quicHeldBack: 5_000,
      quicDroppedToInstances: 7,
      quicDroppedToClients: 8,
      quicYielded: 12,
    },
    outcomes: { ...noQuicCounts().outcomes, forwarded: 70, stray: 80 },
  };
  const httpCounts = Object.fromEntries(
    HTTP_CLASSES.map((kind, row) => [
      kind,
      Object.fromEntries(HTTP_OUTCOMES.map((outcome, column) => [outcome, 10 * row + column])),
    ]),
  ) as HttpCounts;
  const httpRefusals = Object.fromEntries(
    HTTP_REFUSALS.map((reason, index) => [reason, 20 + index]),
  ) as Record<HttpRefusal, number>;
  const metrics = await createGatewayMetrics({
    plane: {
      stats: () => ({
        ...{ routes: 9, tls, quic, httpOpen: 4, httpYielded: 13, httpRequests: 5, httpCounts, httpRefusals },
        httpStalledBytes: 14,
      }),
    },
    planeName: 'native',
    routing: { table: { instanceCount: 7, routeCount: 6 }, lastSyncTime: 1_700_000_000 },
  });
  const lines = (await metrics.text()).split('\n');
  const types = lines.flatMap((line) => {
    const match = /^# TYPE (\S+) (\S+)$/.exec(line);
    return match ? [[match[1]!, match[2]!]] : [];
  });
  assert.deepEqual({ ...Object.fromEntries(types), ...METRICS }, Object.fromEntries(types));
  const expected = [
    'info{data_plane="native"} 1',
    'instances 7',
    'routes 6',
    'last_sync_time_seconds 1700000000',
    'tls_open_connections 3',
    'tls_bytes_total{direction="to_instances"} 1000',
    'tls_bytes_total{direction="to_clients"} 2000',
    ...TLS_OUTCOMES.map((outcome, index) => `tls_connections_total{outcome="${outcome}"} ${10 + index}`),
    'quic_open_flows 6',
    'quic_bytes_total{direction="to_instances"} 3000',
    'quic_bytes_total{direction="to_clients"} 4000',
    'quic_bytes_total{direction="held_back"} 5000',
    'quic_dropped_datagrams_total{direction="to_instances"} 7',
    'quic_dropped_datagrams_total{direction="to_clients"} 8',
    ...QUIC_OUTCOMES.map(
      (outcome) => `quic_connections_total{outcome="${outcome}"} ${quic.outcomes[outcome]}`,
    ),
    'tls_yielded_connections_total 11',
    'tls_stalled_bytes 9',
    'quic_yielded_flows_total 12',
    'http_yielded_total 13',
    'http_open_connections 4',
    'http_stalled_bytes 14',
    ...HTTP_REFUSALS.map((reason, index) => `http_refused_total{reason="${reason}"} ${20 + index}`),
    ...HTTP_CLASSES.flatMap((kind, row) =>
      HTTP_OUTCOMES.map(
        (outcome, column) => `http_requests_total{class="${kind}",outcome="${outcome}"} ${10 * row + column}`,
      ),
    ),
  ];
  for (const line of expected) assert.ok(lines.includes(`skerry_gateway_${line}`), line);
  for (const { metric, type } of [...Object.values(TLS_FIGURES), ...Object.values(QUIC_FIGURES)])
    assert.ok(lines.includes(`# TYPE skerry_gateway_${metric} ${type}`), metric);
});
