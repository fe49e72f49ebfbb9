import { type Static, Type } from '../type.ts';
import { NAMES_API } from './gateway-names.ts';
import { REFUSALS_API } from './gateway-refusals.ts';
import { type Api, NO_PARAMETERS, orNull, text } from './operation.ts';
import { FRONT_API, REFERENCE_API } from './reference.ts';

/** Instance domain record (specification of the gateway, "Resources and their fields"). */
export const DomainRecord = Type.Object(
  {
    instance_hash: Type.String(),
    subdomain: Type.String({ description: 'four words joined by hyphens, without the parent domain' }),
    url: Type.String({ description: 'subdomain and parent domain, without a scheme' }),
    ipv6: orNull(Type.String(), { description: 'null until the instance has an address' }),
    active: Type.Boolean({
      description:
        'routed: the name is its own (the earliest of those that share it), its address is known, and its owner wants it to run. ' +
        'Whether a server inside answers yet does not count',
    }),
  },
  { title: 'DomainRecord' },
);
export type DomainRecord = Static<typeof DomainRecord>;

/** Gateway status record; the ports are an addition. */
export const GatewayStatus = Type.Object(
  {
    instance_count: Type.Integer({ description: 'instances that the gateway knows' }),
    route_count: Type.Integer({ description: 'how many of these are active' }),
    last_sync_time: Type.Number({
      description: 'Unix seconds of the last full sync or applied change, 0 before the first',
    }),
    domain: Type.String(),
    http_port: Type.Optional(Type.Integer({ description: 'deployed gateways do not have this field' })),
    https_port: Type.Optional(Type.Integer()),
    id: Type.Optional(
      Type.String({
        description:
          'of its data directory, at random: two gateways of one server and one domain differ in it. Deployed gateways do not have it',
      }),
    ),
  },
  { title: 'Status' },
);
export type GatewayStatus = Static<typeof GatewayStatus>;

/** What POST /api/sync answers. */
const SyncRecord = Type.Object(
  {
    ...GatewayStatus.properties,
    added: Type.Integer(),
    removed: Type.Integer(),
    changed: Type.Integer(),
    held_back: Type.Optional(
      Type.Integer({
        description: 'instances that suddenly disappeared from the core node and whose routes are kept',
      }),
    ),
    duration_ms: Type.Number(),
  },
  { title: 'Sync' },
);

/** The chain from a message to a served connection, in its order. */
export const WHY_STEPS = ['message', 'name', 'desired', 'allocation', 'phase', 'connection'] as const;

/** Why a name answers or does not: the chain from the message to the last connection (docs/decisions.md 17). */
export const WhyRecord = Type.Object(
  {
    hostname: Type.String(),
    instance_hash: orNull(Type.String()),
    ipv6: orNull(Type.String()),
    chain: Type.Array(
      Type.Object({
        step: Type.Enum(WHY_STEPS),
        ok: orNull(Type.Boolean(), { description: 'null: unknown' }),
        detail: Type.String(),
      }),
    ),
    missing: orNull(Type.Object({ code: Type.String(), message: Type.String() }), {
      description: 'the first thing that is missing; null where nothing is',
    }),
    http3: Type.Optional(
      Type.Object(
        {
          ok: orNull(Type.Boolean(), { description: 'null: unknown, or not forwarded' }),
          detail: Type.String(),
        },
        {
          description:
            'whether HTTP/3 reaches the instance over UDP; without it, browsers use TCP, so it is never what is missing',
        },
      ),
    ),
  },
  { title: 'Why' },
);
export type WhyRecord = Static<typeof WhyRecord>;

const SyncRequest = Type.Union([
  Type.Null(),
  Type.Object(
    {
      accept_loss: Type.Optional(
        Type.Boolean({
          description:
            'confirm that everything missing from the core node is really gone, however much it is',
        }),
      ),
    },
    { additionalProperties: false },
  ),
]);

const name = (description: string) => Type.String({ description });

/** What the gateway's own API answers. Pages of any origin may read it. */
export const GATEWAY_API = {
  getDomainOfInstance: {
    method: 'GET',
    path: '/api/hash/:hash',
    rateClass: 'general',
    summary: 'Compute the host name of an instance hash, even of an unknown one',
    tag: 'domains',
    params: Type.Object({ hash: name('item hash of the INSTANCE message') }),
    query: NO_PARAMETERS,
    answers: { 200: DomainRecord },
    errors: ['INVALID_HASH'],
  },
  findDomain: {
    method: 'GET',
    path: '/api/lookup/:subdomain',
    rateClass: 'general',
    summary: 'Find the instance behind a host name',
    tag: 'domains',
    params: Type.Object({ subdomain: name('four words joined by hyphens') }),
    query: NO_PARAMETERS,
    answers: { 200: DomainRecord },
    errors: ['INVALID_HOSTNAME', 'HOSTNAME_NOT_FOUND'],
  },
  explainDomain: {
    method: 'GET',
    path: '/api/why/:subject',
    rateClass: 'heavy',
    summary: 'Explain step by step why a host name answers or not',
    tag: 'domains',
    params: Type.Object({ subject: name('a host name, with or without its domain, or an item hash') }),
    query: NO_PARAMETERS,
    answers: { 200: WhyRecord },
    errors: ['INVALID_HOSTNAME'],
  },
  ...NAMES_API,
  getGatewayStatus: {
    method: 'GET',
    path: '/api/status',
    rateClass: 'general',
    summary: 'Get how many instances are routed and how fresh the table is',
    tag: 'node',
    answers: { 200: GatewayStatus },
    errors: [],
  },
  syncGateway: {
    method: 'POST',
    path: '/api/sync',
    rateClass: 'general',
    summary: 'Read all instances from the core node again now (Authorization: Bearer API_KEY)',
    tag: 'node',
    body: { kind: 'json', schema: SyncRequest, isOptional: true },
    answers: { 200: SyncRecord },
    errors: [
      'CREDENTIAL_REQUIRED',
      'CREDENTIAL_REFUSED',
      'UNKNOWN_FIELD',
      'UPSTREAM_UNAVAILABLE',
      'UNEXPECTED_ANSWER',
    ],
  },
  ...REFUSALS_API,
  getGatewayMetrics: {
    method: 'GET',
    path: '/metrics',
    rateClass: 'general',
    summary: 'Get metrics in the Prometheus format',
    tag: 'node',
    answers: { 200: text('the Prometheus text format, version 0.0.4') },
    errors: [],
  },
  ...FRONT_API,
  ...REFERENCE_API,
} as const satisfies Api;
