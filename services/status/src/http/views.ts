import Type, { type Static } from 'typebox';
import { BUCKET_MS, meanLatency, percentOnline } from '../history/history.ts';
import type { Service } from '../history/store.ts';
import { GROUPS } from '../registry.ts';

const DAY_MS = 86_400_000;
const nullable = <T extends Type.TSchema>(schema: T) => Type.Union([schema, Type.Null()]);
const Time = Type.String({ format: 'date-time' });
const Percent = (description: string) => Type.Number({ minimum: 0, maximum: 100, description });
const Microseconds = (description: string) => Type.Integer({ minimum: 0, description });

/** A service, in the shape of the deployed status page. */
export const ServiceView = Type.Object({
  id: Type.Integer(),
  name: Type.String(),
  check_interval: Type.Integer({ description: 'seconds' }),
  order_id: Type.Integer(),
  public: Type.Boolean(),
  group_id: Type.Integer({ description: '1 core nodes, 2 compute nodes, 3 other services' }),
  permalink: Type.String(),
  created_at: Time,
  updated_at: Time,
  online: Type.Boolean(),
  latency: Microseconds('of the last check, microseconds'),
  ping_time: Microseconds('the same'),
  online_24_hours: Percent('of the checks of the last 24 hours'),
  online_7_days: Percent('of the checks of the last 7 days'),
  avg_response: Microseconds('mean of the last 24 hours, microseconds'),
  failures_24_hours: Type.Integer(),
  status_code: nullable(Type.Integer()),
  last_success: nullable(Time),
  last_error: nullable(Time),
  stats: Type.Object({ failures: Type.Integer(), hits: Type.Integer(), first_hit: nullable(Time) }),
  messages: Type.Array(Type.Unknown()),
  incidents: Type.Array(Type.Unknown()),
  issue: nullable(Type.String({ description: 'what the last check found' })),
});
export type ServiceView = Static<typeof ServiceView>;
export const ServicesView = Type.Array(ServiceView);

export const FailureView = Type.Object({
  created_at: Time,
  issue: Type.String(),
  error_code: nullable(Type.Integer({ description: 'the status that was answered' })),
});

export const UptimeView = Type.Object({
  timeframe: Type.String({ format: 'date-time', description: 'where the quarter of an hour begins' }),
  amount: Percent('of its checks'),
  hits: Type.Integer(),
  avg_response: Microseconds('microseconds'),
});

export const StatusView = Type.Object({
  status: Type.Enum(['ok', 'degraded']),
  reasons: Type.Array(Type.String()),
  services: Type.Object({ total: Type.Integer(), online: Type.Integer() }),
});

const isoOf = (ms: number) => new Date(ms).toISOString();
const isoOrNull = (ms: number | null) => (ms === null ? null : isoOf(ms));

export function serviceView(service: Service, nowMs: number, periodSeconds: number): ServiceView {
  const { id, target, createdMs, history } = service;
  const { last, totals } = history;
  const day = history.sum(nowMs, DAY_MS);
  const latency = last?.latencyUs ?? 0;
  return {
    id,
    name: target.name,
    check_interval: periodSeconds,
    order_id: id,
    public: true,
    group_id: GROUPS[target.group],
    permalink: target.key.replace(/[^A-Za-z0-9]+/g, '-').toLowerCase(),
    created_at: isoOf(createdMs),
    updated_at: isoOf(last?.atMs ?? createdMs),
    online: last?.isOnline ?? false,
    latency,
    ping_time: latency,
    online_24_hours: percentOnline(day),
    online_7_days: percentOnline(history.sum(nowMs, 7 * DAY_MS)),
    avg_response: meanLatency(day),
    failures_24_hours: day.failures,
    status_code: last?.statusCode ?? null,
    last_success: isoOrNull(totals.lastSuccessMs),
    last_error: isoOrNull(totals.lastFailureMs),
    stats: { failures: totals.failures, hits: totals.hits, first_hit: isoOrNull(totals.firstMs) },
    messages: [],
    incidents: [],
    issue: last === null ? 'was not checked yet' : last.issue,
  };
}

export const failuresView = ({ history }: Service): Static<typeof FailureView>[] =>
  history.failures.map(({ atMs, issue, statusCode }) => ({
    created_at: isoOf(atMs),
    issue,
    error_code: statusCode,
  }));

export const uptimeView = ({ history }: Service, nowMs: number): Static<typeof UptimeView>[] =>
  history
    .list()
    .filter(({ startMs }) => startMs + BUCKET_MS > nowMs - 7 * DAY_MS)
    .map(({ startMs, bucket }) => ({
      timeframe: isoOf(startMs),
      amount: percentOnline(bucket),
      hits: bucket.hits,
      avg_response: meanLatency(bucket),
    }));
