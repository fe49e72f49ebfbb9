import {
  type FailureView,
  SERVICES_PAGE_MAX,
  type ServicesQuery,
  type ServiceView,
  type UptimeDayView,
  type UptimeView,
} from '@skerry/protocol/api/status';
import { BUCKET_MS, DAYS_KEPT, meanLatency, percentOnline } from '../history/history.ts';
import type { Service } from '../history/store.ts';
import { GROUPS } from '../registry.ts';
import { chooseFairly } from './fair.ts';

const DAY_MS = 86_400_000;
const isoOf = (ms: number) => new Date(ms).toISOString();
const isoOrNull = (ms: number | null) => (ms === null ? null : isoOf(ms));

/** Anything but a compute node that never answered since it was announced. Anybody can announce one: it says nothing of how the network is. */
export const isHeard = ({ target, history }: Service) =>
  target.group !== 'compute' || history.totals.lastSuccessMs !== null;

const permalinkOf = ({ target }: Service) => target.key.replace(/[^A-Za-z0-9]+/g, '-').toLowerCase();
export const isOnline = ({ history: { last } }: Service) => last?.isOnline ?? false;

/** Who is shown first to readers that know nothing of pages: what the operator named, then who answers, then who once did. */
const rankOf = (service: Service) =>
  !service.target.isForeign ? 0 : isOnline(service) ? 1 : isHeard(service) ? 2 : 3;

const byId = (a: Service, b: Service) => a.id - b.id;

/** The services that are asked for, in order of id. Pure. @param services in that order */
export function selectServices(
  services: readonly Service[],
  { limit, after, online, heard, permalink }: ServicesQuery,
): Service[] {
  const meant = services.filter(
    (one) =>
      one.id > after &&
      (online === undefined || isOnline(one) === online) &&
      (heard === undefined || isHeard(one) === heard) &&
      (permalink === undefined || permalinkOf(one) === permalink),
  );
  if (limit !== undefined || after > 0) return meant.slice(0, limit ?? SERVICES_PAGE_MAX);
  return chooseFairly(meant, SERVICES_PAGE_MAX, rankOf).toSorted(byId);
}

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
    permalink: permalinkOf(service),
    created_at: isoOf(createdMs),
    updated_at: isoOf(last?.atMs ?? createdMs),
    online: isOnline(service),
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
    issue: last === null ? 'not checked yet' : last.issue,
  };
}

export const failuresView = ({ history }: Service): FailureView[] =>
  history.failures.map(({ atMs, issue, statusCode }) => ({
    created_at: isoOf(atMs),
    issue,
    error_code: statusCode,
  }));

export const daysView = ({ history }: Service, nowMs: number): UptimeDayView[] =>
  history
    .listDays()
    .filter(({ startMs }) => startMs <= nowMs && startMs > nowMs - DAYS_KEPT * DAY_MS)
    .map(({ startMs, bucket }) => ({
      date: isoOf(startMs).slice(0, 10),
      amount: percentOnline(bucket),
      hits: bucket.hits,
      failures: bucket.failures,
      avg_response: meanLatency(bucket),
    }));

export const uptimeView = ({ history }: Service, nowMs: number): UptimeView[] =>
  history
    .list()
    .filter(({ startMs }) => startMs <= nowMs && startMs + BUCKET_MS > nowMs - 7 * DAY_MS)
    .map(({ startMs, bucket }) => ({
      timeframe: isoOf(startMs),
      amount: percentOnline(bucket),
      hits: bucket.hits,
      avg_response: meanLatency(bucket),
    }));
