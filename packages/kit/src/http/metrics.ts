import type { ErrorCode } from '@skerry/protocol';
import type { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { cached } from '../cached.ts';
import { VERSION } from '../daemon/version.ts';
import type { HttpObserver, LetGo } from './request-trace.ts';

/** However often it is asked for, the text is made this often at most. */
const TEXT_TTL_MS = 1_000;
const HTTP_SECONDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

export interface MetricsOptions {
  /** The daemon's name, a label of `skerry_build_info`. */
  readonly service: string;
  /** Also memory, processor time, event loop lag and garbage collection of the process; once in a process. */
  readonly isProcess: boolean;
}

export type Readings =
  | number
  | readonly { readonly labels: Readonly<Record<string, string>>; readonly value: number }[];
type Read = () => Readings | Promise<Readings>;

/** What a daemon counts. Each has one of its own; nothing is global. */
export interface Metrics {
  readonly registry: Registry;
  counter<L extends string>(name: string, help: string, labels: readonly L[]): Counter<L>;
  gauge(name: string, help: string): Gauge;
  histogram<L extends string>(
    name: string,
    help: string,
    buckets: readonly number[],
    labels?: readonly L[],
  ): Histogram<L>;
  /** A gauge that is read when somebody asks. */
  watch(name: string, help: string, read: Read, labels?: readonly string[]): void;
  /** The same for a counter, of what is counted elsewhere. */
  watchCounter(name: string, help: string, read: Read, labels?: readonly string[]): void;
  /** The Prometheus text format, version 0.0.4; at most a second old. */
  text(): Promise<string>;
}

const collectBy = (read: Read) =>
  async function collect(this: Gauge | Counter): Promise<void> {
    const readings = await read();
    this.reset();
    if (typeof readings === 'number') this.inc(readings);
    else for (const { labels, value } of readings) this.inc({ ...labels }, value);
  };

/** The library is loaded when the first metrics are made: commands that count nothing do not pay for it. */
export async function createMetrics(options: MetricsOptions): Promise<Metrics> {
  const prom = (await import('prom-client')).default;
  const registry = new prom.Registry();
  const registers = [registry];
  if (options.isProcess) prom.collectDefaultMetrics({ register: registry });
  const metrics: Metrics = {
    registry,
    counter: (name, help, labels) => new prom.Counter({ name, help, labelNames: [...labels], registers }),
    gauge: (name, help) => new prom.Gauge({ name, help, registers }),
    histogram: (name, help, buckets, labels = []) =>
      new prom.Histogram({ name, help, buckets: [...buckets], labelNames: [...labels], registers }),
    watch(name, help, read, labels = []) {
      const collect = collectBy(read);
      new prom.Gauge({ name, help, labelNames: [...labels], registers, collect });
    },
    watchCounter(name, help, read, labels = []) {
      const collect = collectBy(read);
      new prom.Counter({ name, help, labelNames: [...labels], registers, collect });
    },
    text: cached(TEXT_TTL_MS, () => registry.metrics()),
  };
  const build = [{ labels: { service: options.service, version: VERSION }, value: 1 }];
  metrics.watch('skerry_build_info', 'what runs', () => build, ['service', 'version']);
  return metrics;
}

const statusClass = (status: number) => `${Math.floor(status / 100)}xx`;

/** Requests by method, route and class of status, their durations, and refusals by code. */
export function createHttpObserver(metrics: Metrics): HttpObserver {
  const requests = metrics.counter('skerry_http_requests_total', 'requests that were answered', [
    'method',
    'route',
    'status',
  ]);
  const durations = metrics.histogram(
    'skerry_http_request_duration_seconds',
    "from the request headers to the answer's headers",
    HTTP_SECONDS,
    ['method', 'route'],
  );
  const refusals = metrics.counter('skerry_refusals_total', 'errors returned, by code', ['code']);
  const letGo = metrics.counter(
    'skerry_let_go_total',
    'connections, bodies, readers and senders of files that were ended: no room, or another client has it now',
    ['kind'],
  );
  return {
    answered({ method, route, status, seconds }) {
      requests.inc({ method, route, status: statusClass(status) });
      if (seconds !== undefined) durations.observe({ method, route }, seconds);
    },
    refused: (code: ErrorCode) => refusals.inc({ code }),
    letGo: (kind: LetGo) => letGo.inc({ kind }),
  };
}
