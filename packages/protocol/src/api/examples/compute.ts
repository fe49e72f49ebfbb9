import { hostnameOf } from '../../hostname.ts';
import { domainRules } from '../compute/domain-rules.ts';
import type { Examples } from '../operation.ts';
import { MACHINE_EXAMPLES } from './machines.ts';
import { INSTANCE } from './signed.ts';
import { CHALLENGE, COMPUTE_NODE, CORE_NODE, DATE, frontOf, IPV6, OWNER, VERSION } from './values.ts';

const HOST_IPV4 = '203.0.113.9';
const IPV4 = { network: '172.20.16.4/30', guest: '172.20.16.6' };
const ZONE = 'instance.example.net';
const DOMAIN = 'www.example.org';
const CPU = { architecture: 'x86_64', vendor: 'AuthenticAMD', features: ['sev', 'sev_es'] };

const EXECUTION = {
  networking: {
    ipv4_network: IPV4.network,
    host_ipv4: HOST_IPV4,
    ipv6_network: IPV6.network,
    ipv6_ip: IPV6.guest,
    ipv4_ip: IPV4.guest,
    mapped_ports: {
      22: { host: 24_001, tcp: true, udp: false },
      443: { host: 24_002, tcp: true, udp: false },
    },
  },
  status: {
    defined_at: DATE,
    preparing_at: DATE,
    prepared_at: '2026-01-02T03:04:17.000Z',
    starting_at: '2026-01-02T03:04:17.000Z',
    started_at: '2026-01-02T03:04:21.000Z',
    stopping_at: null,
    stopped_at: null,
  },
  running: true,
  awaiting_confidential_init: false,
  vm_type: 'instance',
};

const CONFIG = {
  DOMAIN_NAME: 'compute.example.org',
  node_hash: COMPUTE_NODE.id,
  version: VERSION,
  references: { API_SERVER: CORE_NODE.url },
  security: {
    USE_JAILER: false,
    PRINT_SYSTEM_LOGS: false,
    WATCH_FOR_UPDATES: true,
    ALLOW_VM_NETWORKING: true,
  },
  networking: {
    IPV6_ADDRESS_POOL: COMPUTE_NODE.prefix,
    IPV6_ALLOCATION_POLICY: 'static',
    IPV6_SUBNET_PREFIX: 124,
    IPV6_FORWARDING_ENABLED: true,
    USE_NDP_PROXY: false,
  },
  diagnostic_machine: { ipv6: '2001:db8:1:2:1:63fa:f8b5:db11', reason: null },
  computing: {
    ENABLE_QEMU_SUPPORT: true,
    INSTANCE_DEFAULT_HYPERVISOR: 'qemu',
    ENABLE_CONFIDENTIAL_COMPUTING: false,
    ENABLE_GPU_SUPPORT: false,
    ACCELERATOR: 'kvm',
    ACCELERATOR_REASON: null,
  },
  reason: null,
  programs: { runtimes: ['nodejs', 'python3', 'wasm'], reason: null },
  custom_domains: { zone: ZONE },
};

const WAY_OUT = { egress: true, dns: true, domain: true, http: true };

/** Of what a compute node answers. */
export const COMPUTE_EXAMPLES: Examples = {
  ...MACHINE_EXAMPLES,
  getFront: frontOf(
    'Skerry compute node',
    'What a compute node is and runs, and what owners ask of their instances there.',
    { metrics: '/metrics' },
  ),
  getLogin: {
    answer: {
      success: false,
      status: 'error',
      error: 'nobody logs in here: owners and schedulers sign each request',
      code: 'SIGNATURE_REQUIRED',
    },
  },
  getUsage: {
    answer: {
      cpu: {
        count: 8,
        load_average: { load1: 0.52, load5: 0.61, load15: 0.58 },
        core_frequencies: { min: 2_400, max: 3_200 },
      },
      mem: { total_kB: 33_587_200, available_kB: 21_470_000 },
      disk: { total_kB: 999_200_000, available_kB: 640_300_000 },
      period: { start_timestamp: '2026-01-02T03:04:00.000Z', duration_seconds: 60 },
      properties: { cpu: CPU },
      gpu: { devices: [], available_devices: [] },
      active: true,
    },
  },
  getCapability: {
    answer: {
      cpu: { ...CPU, model: 'AMD EPYC 7443P 24-Core Processor', frequency: 2_844.6, count: 8 },
      memory: { size: 32_031, units: 'MiB', type: null, clock: null, clock_units: null },
    },
  },
  listRunningExecutions: {
    answer: {
      [INSTANCE.itemHash]: {
        networking: { ipv4: IPV4.network, ipv6: IPV6.network },
        vm_type: 'instance',
        awaiting_confidential_init: false,
      },
    },
  },
  listExecutions: { answer: { [INSTANCE.itemHash]: EXECUTION } },
  getNodeConfig: { answer: CONFIG },
  checkPrograms: {
    answer: { index: true, environ: true, cache: true, error_handling: true, lifespan: true },
  },
  checkHost: { answer: { ipv4: WAY_OUT, ipv6: WAY_OUT } },
  checkIpv6: { answer: { host: true, vm: true } },
  listDomainRoutes: {
    answer: [
      {
        name: DOMAIN,
        item_hash: INSTANCE.itemHash,
        ipv6: IPV6.guest,
        ipv4: { public: HOST_IPV4, local: IPV4.guest },
      },
    ],
  },
  listDomains: {
    answer: [
      {
        name: DOMAIN,
        owner: OWNER,
        item_hash: INSTANCE.itemHash,
        active: true,
        cname: true,
        owner_proof: true,
        rules: domainRules(DOMAIN, OWNER, ZONE),
      },
    ],
  },
  listGuestUsage: {
    answer: {
      read_at: '2026-01-02T04:04:21.000Z',
      guests: [
        {
          kind: 'instance',
          item_hash: INSTANCE.itemHash,
          owner: OWNER,
          host_name: hostnameOf(INSTANCE.itemHash),
          phase: 'running',
          since: DATE,
          cpu: { seconds: 83.21, granted: 1 },
          memory: { bytes: 271_986_688, granted_bytes: 536_870_912 },
          disk: { bytes: 1_288_490_188, granted_bytes: 4_294_967_296 },
          network: { in_bytes: 48_912_330, out_bytes: 3_120_455, in_packets: 41_207, out_packets: 22_950 },
        },
      ],
    },
  },
  proveNode: {
    query: { challenge: CHALLENGE },
    answer: {
      node_id: COMPUTE_NODE.id,
      place: COMPUTE_NODE.url,
      challenge: CHALLENGE,
      signature:
        '0x97fb5b7d7b2e63cf029218935b756737dec210d2f66adad3044c965eedc0a72519e41136cce92ab2daa5a781390b648045d49fe38e2563a83a9c32e76a27b32e1c',
    },
  },
};
