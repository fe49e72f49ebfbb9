import type { Examples } from '../operation.ts';
import { INSTANCE } from './signed.ts';
import { DATE, frontOf, HOSTNAME, IPV6, TIME } from './values.ts';

const DOMAIN = 'apps.example.org';
const instance_hash = INSTANCE.itemHash;
const RECORD = {
  instance_hash,
  subdomain: HOSTNAME,
  url: `${HOSTNAME}.${DOMAIN}`,
  ipv6: IPV6.guest,
  active: true,
};
/** How the instance is while no node has room for it. */
const WAITING = '"scheduled": needs 2048 MiB of memory, the only node has 1024 MiB free';
const UNPLACED = `it has no address yet; phase ${WAITING}`;
const STATUS = {
  instance_count: 2,
  route_count: 1,
  last_sync_time: TIME + 0.5,
  domain: DOMAIN,
  http_port: 80,
  https_port: 443,
  id: '0f1e2d3c4b5a69788796a5b4c3d2e1f0',
};

/** Of what a gateway answers. */
export const GATEWAY_EXAMPLES: Examples = {
  getFront: frontOf(
    'Skerry gateway',
    'Which host name leads to which instance, and why one does not answer.',
    { metrics: '/metrics' },
  ),
  getDomainOfInstance: { params: { hash: instance_hash }, answer: RECORD },
  findDomain: { params: { subdomain: HOSTNAME }, answer: RECORD },
  explainDomain: {
    params: { subject: HOSTNAME },
    answer: {
      hostname: RECORD.url,
      instance_hash,
      ipv6: null,
      chain: [
        { step: 'message', ok: true, detail: `the instance counts from ${DATE}` },
        { step: 'name', ok: true, detail: 'no other instance has the name' },
        { step: 'desired', ok: true, detail: 'its owner wants it to run' },
        { step: 'allocation', ok: false, detail: UNPLACED },
        { step: 'phase', ok: false, detail: `its last known phase is ${WAITING}` },
        { step: 'connection', ok: null, detail: 'not tried' },
      ],
      missing: { code: 'INSTANCE_NOT_ROUTED', message: UNPLACED },
      http3: { ok: null, detail: 'this gateway does not forward QUIC: SKERRY_GATEWAY_QUIC is no' },
    },
  },
  listRoutes: {
    query: { limit: 1 },
    answer: {
      routes: [{ instance_hash, subdomain: HOSTNAME, ipv6: IPV6.guest, active: true, shared_by: 1 }],
      total: 1,
      next_position: null,
    },
  },
  listCollisions: {
    answer: {
      collisions: [
        {
          subdomain: HOSTNAME,
          holder: instance_hash,
          // Its first 44 bits are the same.
          waiting: [
            {
              instance_hash: instance_hash.replace(/.$/, 'f'),
              because: `the earlier one has it, and it counts from ${DATE}`,
            },
          ],
        },
      ],
      total: 1,
      next_position: null,
    },
  },
  getTraffic: {
    params: { hash: instance_hash },
    answer: {
      instance_hash,
      url: RECORD.url,
      since: TIME,
      open: 1,
      connections: 12,
      bytes_to_instance: 6_144,
      bytes_to_clients: 1_048_576,
      requests: 3,
    },
  },
  listRefusals: {
    query: { limit: 1 },
    answer: {
      since: TIME,
      networks: [
        {
          network: '198.51.100.0/24',
          count: 612,
          reasons: [
            { reason: 'tls_unknown_name', count: 600 },
            { reason: 'http_hostname_not_found', count: 12 },
          ],
        },
      ],
      others: { count: 3, reasons: [{ reason: 'tls_not_tls', count: 3 }] },
    },
  },
  getGatewayStatus: { answer: STATUS },
  syncGateway: {
    body: { accept_loss: true },
    answer: { ...STATUS, added: 1, removed: 0, changed: 0, duration_ms: 4.211 },
  },
};
