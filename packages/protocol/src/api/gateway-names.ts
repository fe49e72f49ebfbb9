import { type Static, Type } from '../type.ts';
import { type Api, defaulted, NO_PARAMETERS, orNull } from './operation.ts';

const LIST_MAX = 500;
const LIST_USUAL = 100;
/** Beyond it, the gateway would spend longer on a stranger's page than on a connection. */
export const POSITION_MAX = 100_000;

const pageQuery = Type.Object(
  {
    limit: defaulted(
      Type.Integer({ minimum: 1, maximum: LIST_MAX, description: 'how many on a page' }),
      LIST_USUAL,
    ),
    position: defaulted(
      Type.Integer({ minimum: 0, maximum: POSITION_MAX, description: 'where the page begins' }),
      0,
    ),
  },
  { additionalProperties: false },
);
const next_position = orNull(
  Type.Integer({ description: 'of the next page; null after the last, and where the list goes on too far' }),
);

/** A name and where it leads. */
const RouteView = Type.Object(
  {
    instance_hash: Type.String({ description: 'the instance that has the name' }),
    subdomain: Type.String({ description: 'four words joined by hyphens' }),
    ipv6: orNull(Type.String(), { description: 'null until the instance has an address' }),
    active: Type.Boolean({ description: 'routed, as in `GET /api/hash/{hash}`' }),
    shared_by: Type.Integer({ description: 'instances with this name, the one that has it included' }),
  },
  { title: 'Route' },
);

/** A name that several instances have by their hashes. */
const CollisionView = Type.Object(
  {
    subdomain: Type.String(),
    holder: Type.String({ description: 'the instance that has the name' }),
    waiting: Type.Array(
      Type.Object({
        instance_hash: Type.String(),
        because: Type.String({ description: 'why the holder comes before it' }),
      }),
      { description: 'the others, in the order in which they would get it' },
    ),
  },
  { title: 'Collision' },
);

/** What passed through this gateway, for the owner of the name. */
export const TrafficView = Type.Object(
  {
    instance_hash: Type.String(),
    url: Type.String({ description: 'the host name' }),
    since: orNull(
      Type.Integer({
        description:
          'when what is counted began, Unix seconds: the first use since the gateway started or the address changed; null before',
      }),
    ),
    open: Type.Integer({ description: 'TLS connections that are open now' }),
    connections: Type.Integer({ description: 'TLS connections' }),
    bytes_to_instance: Type.Integer({ description: 'of TLS connections that have ended' }),
    bytes_to_clients: Type.Integer({ description: 'of TLS connections that have ended' }),
    requests: Type.Integer({ description: 'HTTP requests on port 80 that the instance answered' }),
  },
  { title: 'Traffic' },
);
export type TrafficView = Static<typeof TrafficView>;

/** Lists of the names that a gateway knows, and what their owners may ask. */
export const NAMES_API = {
  listRoutes: {
    method: 'GET',
    path: '/api/routes',
    rateClass: 'general',
    summary: 'List the names that this gateway knows and where they lead; a change meanwhile can move a page',
    tag: 'domains',
    query: pageQuery,
    answers: {
      200: Type.Object(
        { routes: Type.Array(RouteView), total: Type.Integer(), next_position },
        { title: 'Routes' },
      ),
    },
    errors: [],
  },
  listCollisions: {
    method: 'GET',
    path: '/api/collisions',
    rateClass: 'general',
    summary: 'List names that several instances share: who has each, and who waits for it',
    tag: 'domains',
    query: pageQuery,
    answers: {
      200: Type.Object(
        { collisions: Type.Array(CollisionView), total: Type.Integer(), next_position },
        { title: 'Collisions' },
      ),
    },
    errors: [],
  },
  getTraffic: {
    method: 'GET',
    path: '/api/traffic/:hash',
    rateClass: 'authenticated',
    summary:
      'Count what passed through this gateway to an instance; for its owner, who signs the request as those to a compute node, for the domain of the gateway',
    tag: 'domains',
    params: Type.Object({ hash: Type.String({ description: 'item hash of the INSTANCE message' }) }),
    query: NO_PARAMETERS,
    answers: { 200: TrafficView },
    errors: [
      'INVALID_HASH',
      'INSTANCE_NOT_FOUND',
      'SIGNATURE_REQUIRED',
      'INVALID_SIGNATURE',
      'INVALID_ADDRESS',
      'UNKNOWN_CHAIN',
      'UNKNOWN_FIELD',
      'NOT_PERMITTED',
      'UPSTREAM_UNAVAILABLE',
      'UNEXPECTED_ANSWER',
    ],
  },
} as const satisfies Api;
