import { type Static, Type } from '../type.ts';
import { type Api, defaulted, NO_PARAMETERS, orNull, text } from './operation.ts';
import { REFERENCE_API } from './reference.ts';

const Time = Type.String({ format: 'date-time' });
const Percent = (description: string) => Type.Number({ minimum: 0, maximum: 100, description });
const Microseconds = (description: string) => Type.Integer({ minimum: 0, description });

/** A service, in the shape of the deployed status page. */
export const ServiceView = Type.Object(
  {
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
    status_code: orNull(Type.Integer()),
    last_success: orNull(Time),
    last_error: orNull(Time),
    stats: Type.Object({ failures: Type.Integer(), hits: Type.Integer(), first_hit: orNull(Time) }),
    messages: Type.Array(Type.Unknown()),
    incidents: Type.Array(Type.Unknown()),
    issue: orNull(Type.String({ description: 'what the last check found' })),
  },
  { title: 'Service' },
);
export type ServiceView = Static<typeof ServiceView>;
const ServicesView = Type.Array(ServiceView);

export const FailureView = Type.Object(
  {
    created_at: Time,
    issue: Type.String(),
    error_code: orNull(Type.Integer({ description: 'the status that was answered' })),
  },
  { title: 'Failure' },
);
export type FailureView = Static<typeof FailureView>;

export const UptimeView = Type.Object(
  {
    timeframe: Type.String({ format: 'date-time', description: 'start of the quarter of an hour' }),
    amount: Percent('of its checks'),
    hits: Type.Integer(),
    avg_response: Microseconds('microseconds'),
  },
  { title: 'Uptime' },
);
export type UptimeView = Static<typeof UptimeView>;

export const UptimeDayView = Type.Object(
  {
    date: Type.String({ format: 'date', description: 'the day, UTC' }),
    amount: Percent('of its checks'),
    hits: Type.Integer({ description: 'checks' }),
    failures: Type.Integer({ description: 'of these' }),
    avg_response: Microseconds('microseconds'),
  },
  { title: 'UptimeDay' },
);
export type UptimeDayView = Static<typeof UptimeDayView>;

const StatusServiceView = Type.Object(
  {
    status: Type.Enum(['ok', 'degraded']),
    reasons: Type.Array(Type.String()),
    services: Type.Object({ total: Type.Integer(), online: Type.Integer() }),
  },
  { title: 'Status' },
);

/** The largest page of the list, and what there is without one. */
export const SERVICES_PAGE_MAX = 1_000;

const ServicesQuery = Type.Object(
  {
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: SERVICES_PAGE_MAX,
        description:
          'how many at most. Where it and `after` are left out: 1,000, first what the operator named and what answers, each domain, IPv4 /24 and IPv6 /48 in turn',
      }),
    ),
    after: defaulted(
      Type.Integer({
        minimum: 0,
        maximum: Number.MAX_SAFE_INTEGER,
        description:
          'only those with a greater id: the last id of the page before. Fewer than `limit` are the last page',
      }),
      0,
    ),
    online: Type.Optional(
      Type.Boolean({ description: 'only those that answered the last check, or did not' }),
    ),
    heard: Type.Optional(
      Type.Boolean({
        description:
          'false: only compute nodes that never answered since they were announced, which anybody may do; true: all others',
      }),
    ),
    permalink: Type.Optional(
      Type.String({ maxLength: 200, description: 'only this one, such as compute-NODE_ID' }),
    ),
  },
  { additionalProperties: false },
);
export type ServicesQuery = Static<typeof ServicesQuery>;

const ServiceParams = Type.Object({
  id: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, description: 'as in the list' }),
});

/** What the status service answers, in the paths of the deployed status page. */
export const STATUS_API = {
  listServices: {
    method: 'GET',
    path: '/api/services',
    rateClass: 'general',
    summary: 'List services with their uptime, in order of id',
    tag: 'services',
    query: ServicesQuery,
    answers: { 200: ServicesView },
    errors: [],
  },
  getService: {
    method: 'GET',
    path: '/api/services/:id',
    rateClass: 'general',
    summary: 'Get a service',
    tag: 'services',
    params: ServiceParams,
    query: NO_PARAMETERS,
    answers: { 200: ServiceView },
    errors: ['SERVICE_NOT_FOUND'],
  },
  listFailures: {
    method: 'GET',
    path: '/api/services/:id/failures',
    rateClass: 'general',
    summary: 'List the last failures of a service, newest first',
    tag: 'services',
    params: ServiceParams,
    query: NO_PARAMETERS,
    answers: { 200: Type.Array(FailureView) },
    errors: ['SERVICE_NOT_FOUND'],
  },
  listUptime: {
    method: 'GET',
    path: '/api/services/:id/uptime_data',
    rateClass: 'general',
    summary: 'Get the last week of a service in quarters of an hour, oldest first',
    tag: 'services',
    params: ServiceParams,
    query: NO_PARAMETERS,
    answers: { 200: Type.Array(UptimeView) },
    errors: ['SERVICE_NOT_FOUND'],
  },
  listDays: {
    method: 'GET',
    path: '/api/services/:id/uptime_days',
    rateClass: 'general',
    summary: 'Get the last year of a service day by day, oldest first; days without a check are left out',
    tag: 'services',
    params: ServiceParams,
    query: NO_PARAMETERS,
    answers: { 200: Type.Array(UptimeDayView) },
    errors: ['SERVICE_NOT_FOUND'],
  },
  getStatus: {
    method: 'GET',
    path: '/status',
    rateClass: 'general',
    summary: 'Check the status service itself',
    tag: 'node',
    answers: { 200: StatusServiceView },
    errors: [],
  },
  getPage: {
    method: 'GET',
    path: '/',
    rateClass: 'general',
    summary: 'Show the status page',
    tag: 'services',
    answers: { 200: text('a page to read', 'text/html') },
    errors: [],
  },
  ...REFERENCE_API,
} as const satisfies Api;
