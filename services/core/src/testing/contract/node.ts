import {
  alone,
  type Cases,
  given,
  refuses,
  refusesTooMany,
  refusesWithoutDatabase,
  succeeds,
} from './case.ts';

const health = (path: string) => [
  succeeds(path),
  alone(
    refuses(503, (core) => {
      core.stop();
      return { path };
    }),
  ),
];

/** Routes that answer from memory refuse nothing but too many requests. */
const fromMemory = (path: string) => [succeeds(path), refusesTooMany(path)];

const PROOF = '/status/proof';
const REACHABILITY = '/api/v0/reachability';
const reach = (body: object, remoteAddress = '127.0.0.1') => ({
  path: REACHABILITY,
  body: JSON.stringify({ nonce: 'ab'.repeat(32), ...body }),
  headers: { 'content-type': 'application/json' },
  remoteAddress,
});

/** What the node says of itself, the event log, and WebSockets. */
export const nodeCases: Cases = {
  'GET /api/v0/events': [
    succeeds(async (core) => {
      await given.instance(core);
      return { path: '/api/v0/events?cursor=0&limit=100' };
    }),
    refuses('INVALID_CURSOR', '/api/v0/events?cursor=x'),
    succeeds('/api/v0/events?kinds=message,instance&bodies=shared'),
    refuses('INVALID_PARAMETERS', '/api/v0/events?limit=0'),
    refuses('INVALID_PARAMETERS', '/api/v0/events?kinds=none'),
  ],
  'GET /api/ws0/messages': [
    refuses('UPGRADE_REQUIRED', '/api/ws0/messages'),
    refuses('INVALID_PARAMETERS', '/api/ws0/messages?history=200'),
    refuses('INVALID_PARAMETERS', '/api/ws0/messages?startDate=-1'),
  ],
  'GET /api/ws0/status': [refuses('UPGRADE_REQUIRED', '/api/ws0/status')],
  'GET /api/v0/state/digest': [
    succeeds(async (core) => {
      await given.aggregate(core);
      return { path: '/api/v0/state/digest' };
    }),
    refusesTooMany('/api/v0/state/digest', 10),
    refusesWithoutDatabase('/api/v0/state/digest'),
  ],
  'GET /api/v0/state/digest/messages': [
    succeeds(async (core) => {
      await given.aggregate(core);
      return { path: '/api/v0/state/digest/messages' };
    }),
    refusesWithoutDatabase('/api/v0/state/digest/messages'),
  ],
  'GET /api/v0/state/digest/instances': [
    succeeds(async (core) => {
      await given.instance(core);
      return { path: '/api/v0/state/digest/instances' };
    }),
    refusesTooMany('/api/v0/state/digest/instances', 10),
    refusesWithoutDatabase('/api/v0/state/digest/instances'),
  ],
  'GET /api/v0/state/digest/derived': [
    succeeds(async (core) => {
      await given.aggregate(core);
      return { path: '/api/v0/state/digest/derived' };
    }),
    refusesTooMany('/api/v0/state/digest/derived', 10),
    refusesWithoutDatabase('/api/v0/state/digest/derived'),
  ],
  'GET /api/v0/info/public.json': fromMemory('/api/v0/info/public.json'),
  'GET /status/proof': [
    succeeds(`${PROOF}?challenge=${'ab'.repeat(32)}`),
    refuses('INVALID_PARAMETERS', PROOF),
    refuses('INVALID_PARAMETERS', `${PROOF}?challenge=xyz`),
    refuses('UNKNOWN_FIELD', `${PROOF}?challenge=${'ab'.repeat(32)}&more=1`),
    refusesTooMany(`${PROOF}?challenge=${'ab'.repeat(32)}`, 10),
  ],
  'POST /api/v0/reachability': [
    succeeds(() => reach({ url: 'http://127.0.0.1:9' })),
    refuses('INVALID_PARAMETERS', () => reach({})),
    refuses('INVALID_PARAMETERS', () => reach({ url: 'ftp://127.0.0.1' })),
    refuses('INVALID_ADDRESS', () => reach({ ipv6_prefix: 'fd00::/48' })),
    refuses('UNKNOWN_FIELD', () => reach({ url: 'http://127.0.0.1', more: 1 })),
    refusesTooMany(REACHABILITY, 10, 'POST'),
  ],
  'GET /api/v0/version': fromMemory('/api/v0/version'),
  'GET /api/v0/openapi.json': fromMemory('/api/v0/openapi.json'),
  'GET /': fromMemory('/'),
  'GET /api/v0/docs': fromMemory('/api/v0/docs'),
  'GET /api/docs': fromMemory('/api/docs'),
  'GET /api/docs/swagger.json': fromMemory('/api/docs/swagger.json'),
  'GET /metrics': fromMemory('/metrics'),
  'GET /metrics.json': fromMemory('/metrics.json'),
  'GET /health': health('/health'),
  'GET /api/v0/health': health('/api/v0/health'),
};
