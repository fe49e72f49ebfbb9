import type { Examples } from '../../operation.ts';
import { NOTE } from '../signed.ts';
import {
  CHALLENGE,
  CORE_NODE,
  CREDIT_PUBLISHER,
  frontOf,
  MONITOR,
  OWNER,
  SCHEDULER,
  TIME,
  TIME_MS,
  VERSION,
} from '../values.ts';

const trusted = (value: string) => ({ value: [value], source: 'setting' });
const INFO = {
  node_multi_addresses: [
    '/dns4/core.example.org/tcp/4025/p2p/12D3KooWGC6TvWhfapngX6wvJHMYvKpDMXPb3ZnCZ6dMoaMtimQ5',
  ],
  name: 'skerry',
  version: VERSION,
  address: CORE_NODE.address,
  trust: {
    schedulers: trusted(SCHEDULER),
    scoring_publishers: trusted(MONITOR),
    credit_publishers: trusted(CREDIT_PUBLISHER),
    known_core_nodes: trusted(CORE_NODE.address),
    credit_enforcement: { value: true, source: 'peers' },
  },
  services: {
    gateway: 'https://gateway.example.org',
    scheduler: 'https://scheduler.example.org',
    credit: 'https://credit.example.org',
    status: 'https://status.example.org',
  },
};

const OK = { status: 'ok' };
const HEALTH = {
  ...OK,
  version: VERSION,
  checks: {
    database: OK,
    disk: { ...OK, free_bytes: 81_604_378_624, reserve_bytes: 1_073_741_824, takes_writes: true },
    pipeline: { ...OK, queued: 0 },
    trust: OK,
    roles: OK,
    chains: OK,
    peers: { ...OK, state: 'synced' },
    clock: { ...OK, offset_ms: 12 },
  },
};

const MESSAGES = 1_204;
const SYNC = {
  node_id: '0f8fad5b-d9cb-469f-a165-70867728950e',
  address: CORE_NODE.address,
  state: 'synced',
  messages: MESSAGES,
  behind: 0,
  later: 0,
  clock: { state: 'right', time_ms: TIME_MS, offset_ms: 12, clocks: 2, correction_ms: 0 },
  peers: [
    {
      name: 'https://core2.example.org',
      address: '0x1f50f2a4b4fec7a9e9ee6c8dc1d0d9b9c7b7fb3e',
      state: 'synced',
      messages: MESSAGES,
      later: 0,
      offset_ms: 12,
      taken: 3,
      given: 1,
      synced_ms: TIME_MS - 4_000,
      session_ms: 40,
      failure: null,
      forgotten_ms: TIME_MS - 4_000,
      forgotten_failure: null,
      points: 0,
    },
  ],
};

const digestOf = (count: number, digits: string) => ({ count, digest: digits.repeat(32) });
const CURSOR = '1204';
const MESSAGE_DIGEST = digestOf(MESSAGES, '5a');

/** What the node says of itself, of its peers, and of what it holds. */
export const NODE_EXAMPLES: Examples = {
  getFront: frontOf('Skerry core node', 'Messages are signed by their senders.', {
    health: '/health',
    metrics: '/metrics',
  }),
  getInfo: { answer: INFO },
  proveCoreNode: {
    query: { challenge: CHALLENGE, place: CORE_NODE.url },
    answer: {
      node_id: CORE_NODE.id,
      place: CORE_NODE.url,
      challenge: CHALLENGE,
      signature:
        '0xd28095848232211301393069b0d83fa91fb7326ff69d2a895e67c3ccf06b14b22f0e22f0c4b7055b3038d2c39eeb44f8d4dabb610e9365a901d095933aa745191b',
    },
  },
  getVersion: { answer: { version: VERSION } },
  getRootVersion: { answer: { version: VERSION } },
  getHealth: { answer: HEALTH },
  getApiHealth: { answer: HEALTH },
  getDeployedMetrics: {
    answer: {
      pyaleph_build_info: { python_version: null, version: VERSION },
      pyaleph_status_peers_total: 1,
      pyaleph_status_sync_messages_total: MESSAGES,
      pyaleph_status_sync_permanent_files_total: 86,
      pyaleph_status_sync_pending_messages_total: 2,
      pyaleph_status_sync_pending_txs_total: 0,
      pyaleph_status_chain_eth_height_remaining_total: null,
    },
  },
  checkReachability: {
    body: { url: 'http://203.0.113.9:4020', nonce: CHALLENGE },
    answer: { verdict: 'REACHED', seen_as: '203.0.113.9' },
  },
  getSyncStatus: { answer: SYNC },
  offerMessages: { answer: { taken: 1, known: 0, refused: 0, forged: 0 } },
  listEvents: {
    query: { cursor: '1203', limit: 1 },
    answer: {
      events: [
        {
          cursor: CURSOR,
          kind: 'message',
          time_ms: TIME_MS,
          data: {
            item_hash: NOTE.itemHash,
            type: 'POST',
            sender: OWNER,
            channel: 'notes',
            timestamp: TIME,
            content_type: 'note',
          },
        },
      ],
      next_cursor: CURSOR,
    },
  },
  getStateDigest: {
    answer: {
      cursor: CURSOR,
      messages: MESSAGE_DIGEST,
      derived: { aggregates: digestOf(31, '6b'), posts: digestOf(840, '7c') },
    },
  },
  getMessagesDigest: { answer: { cursor: CURSOR, ...MESSAGE_DIGEST } },
  getInstancesDigest: { answer: { cursor: CURSOR, ...digestOf(12, '8d') } },
  getDerivedDigests: {
    answer: {
      cursor: CURSOR,
      kinds: {
        posts: digestOf(840, '7c'),
        aggregates: digestOf(31, '6b'),
        credits: digestOf(96, '9e'),
        files: digestOf(86, 'a1'),
        measurements: digestOf(48, 'b2'),
        programs: digestOf(7, 'c3'),
      },
    },
  },
};
