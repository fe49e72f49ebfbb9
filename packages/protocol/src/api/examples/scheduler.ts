import type { Examples } from '../operation.ts';
import { INSTANCE } from './signed.ts';
import { COMPUTE_NODE, DATE, frontOf, IPV6, SCHEDULER, TIME, TIME_MS, VERSION } from './values.ts';

const vm_hash = INSTANCE.itemHash;
const node_id = COMPUTE_NODE.id;
const PERIOD = { start_timestamp: DATE, duration_seconds: 10 };
const NODE = { node_id, url: COMPUTE_NODE.url, ipv6: COMPUTE_NODE.prefix, supports_ipv6: true };
const SIZE = { cpu: 1, memory_mib: 2_048, disk_gib: 20 };
const FREE = { cpu: 7, memory_mib: 6_144, disk_gib: 180 };
/** One that no node has room for. */
const WAITING = '9d2c9ae7ae1e22e5f4f2f1f2b8a46e5d1d1c37f2a5a1d2f6f7f0f3c1b0a9e8d7';
const LACKING = {
  code: 'NO_CAPACITY',
  message: 'needs 9999 MiB of memory, the only node has 6144 MiB free',
};

/** Of what a scheduler answers. */
export const SCHEDULER_EXAMPLES: Examples = {
  getFront: frontOf('Skerry scheduler', 'Which compute node runs which instance, and why.', {
    status: '/status',
  }),
  getPlan: {
    answer: {
      period: PERIOD,
      plan: { [node_id]: { persistent_vms: [], instances: [vm_hash], on_demand_vms: [], jobs: [] } },
      waiting: [{ vm_hash: WAITING, reason: LACKING }],
    },
  },
  listNodes: {
    answer: {
      nodes: [
        {
          ...NODE,
          address: COMPUTE_NODE.address,
          version: VERSION,
          features: ['kvm'],
          capacity: { cpu: 4, memory_mib: 8_192, disk_gib: 200 },
          limits: { cpu: 8, memory_mib: 8_192, disk_gib: 200 },
          used: SIZE,
          free: FREE,
          instances: 1,
          healthy: true,
          reason: null,
          leaving: null,
          wrong_since_ms: null,
          trust: 'listed',
          score: null,
          weight: 0.375,
          announced_at: TIME,
        },
      ],
    },
  },
  getAllocation: {
    params: { vm_hash },
    answer: {
      vm_hash,
      vm_type: 'instance',
      vm_ipv6: IPV6.guest,
      period: PERIOD,
      node: NODE,
      reason: null,
    },
  },
  explainPlacement: {
    params: { vm_hash },
    query: { candidates: 1 },
    answer: {
      vm_hash,
      needs: SIZE,
      created_at: TIME,
      node_id,
      vm_ipv6: IPV6.guest,
      verdict: { code: 'STAYS', message: 'a placed instance stays on its node while the node stays' },
      decisions: [],
      nodes: { FITS: 1 },
      candidates: [
        {
          node_id,
          has_room: true,
          weight: 0.375,
          free_share: 0.75,
          score: null,
          free: FREE,
          trust: 'listed',
          against: null,
        },
      ],
    },
  },
  simulatePlacement: {
    query: { vcpus: 1, memory: 512, disk: 4 },
    answer: { schedulable: true, reasons: [], node_id },
  },
  getSchedulerStatus: {
    answer: {
      status: 'ok',
      reasons: [],
      problems: [],
      address: SCHEDULER,
      leadership: { role: 'leader', since_ms: TIME_MS, can_lead: true, peers: [] },
      nodes: { total: 1, healthy: 1 },
      instances: { total: 2, placed: 1, waiting: 1, leaving: 0 },
    },
  },
};
