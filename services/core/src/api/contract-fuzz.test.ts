import { Readable } from 'node:stream';
import { after, before, describe } from 'node:test';
import { buildNetworkMessage, signMessage } from '@skerry/client';
import { rateLimitsOf, readConfig } from '@skerry/kit';
import { testContract } from '@skerry/kit/testing';
import { MESSAGES_TOPIC } from '@skerry/protocol/api/core/deployed/publish';
import { CORE_API } from '@skerry/protocol/api/core/index';
import type { NO_PARAMETERS } from '@skerry/protocol/api/operation';
import { coreConfig } from '../config.ts';
import { Dag } from '../store/ipfs/testing/dags.ts';
import { networkInstance } from '../testing/contract/costs.ts';
import { QUIET_CHAIN } from '../testing/contract/indexer.ts';
import { createTestCore, instanceContent, signers, type TestCore } from '../testing/core.ts';

/** Requests with parameters and fields in other forms than the contract has. Whole ones of every operation: contract.test.ts. */

type Core = typeof CORE_API;
type Varied = { readonly query: object } | { readonly body: { readonly kind: 'json' } };
type Fixed<O> = O extends { readonly query: infer Q }
  ? typeof NO_PARAMETERS extends Q
    ? true
    : false
  : false;
/** What is asked with a query or with JSON. Programs, which run in a sandbox, parts of files and WebSockets have tests of their own. */
type Fuzzed = {
  [Id in Exclude<keyof Core, 'runProgram' | 'sendPart' | 'watchMessages'> as Core[Id] extends Varied
    ? Fixed<Core[Id]> extends true
      ? never
      : Id
    : never]: Core[Id];
};

const { alice, monitor } = signers;
const { address } = alice;
const NODE_ID = 'ab'.repeat(32);
const record = { node_id: NODE_ID, measured_at: Date.now() / 1000, asn: 64_512, base_latency: 0.25 };
const metrics = { version: '1.0', tags: [], metrics: { ccn: [record], crn: [record] } };

const instance = signMessage({ type: 'INSTANCE', content: instanceContent }, alice);
const messages = [
  instance,
  signMessage({ type: 'POST', content: { type: 'note', content: { text: 'hello' } } }, alice),
  signMessage({ type: 'AGGREGATE', content: { key: 'fuzz', content: { a: { b: 1 } } } }, alice),
  signMessage(
    { type: 'POST', channel: 'net-scoring', content: { type: 'net-scoring-metrics', content: metrics } },
    monitor,
  ),
];

const dag = new Dag();
const directory = String(await dag.directory({ 'below/a': Buffer.from('what the fuzz asks for\n') }));

const { message } = JSON.parse(
  buildNetworkMessage({ type: 'POST', content: { type: 'note', content: { published: true } } }, alice).body,
) as { message: object };
const published = { topic: MESSAGES_TOPIC, data: JSON.stringify(message) };

const list = { query: { page: 1, limit: 2 } };
const numbered = { params: { page: '1' } };
const measured = { params: { node_hash: NODE_ID }, query: { sort: 'desc', format: 'rows' } };
const chain = { params: { network: 'quiet' }, query: { limit: 2, from_block: 1 } };
const estimated = { type: 'INSTANCE', item_type: 'inline', item_hash: '0'.repeat(64) };
const draw = { seed: 'a throw of dice', min: 1, max: 6, count: 3 };

const REQUESTS = {
  listMessages: [{ query: { ...list.query, addresses: address, types: 'POST', 'content.keys': 'text' } }],
  listNetworkMessages: [{ query: { pagination: 2, sortOrder: 1, startDate: 0, cursor: '' } }, {}],
  listNetworkMessagesOfPage: [{ ...numbered, query: { pagination: 2, contentFormat: 'headers' } }],
  listMessageHashes: [
    { query: { status: 'processed', hash_only: 'False', startDate: 1, endDate: 0, pagination: 2 } },
    {},
  ],
  listNetworkPosts: [{ query: { pagination: 2, types: 'note', addresses: address } }, {}],
  listNetworkPostsOfPage: [{ ...numbered, query: { pagination: 2, sortBy: 'tx-time' } }],
  listBriefPosts: [{ query: { pagination: 2, types: 'note', addresses: address } }, {}],
  listBriefPostsOfPage: [{ ...numbered, query: { pagination: 2, sortOrder: 1 } }],
  listAggregates: [{ query: { ...list.query, address, key: 'fuzz', 'content.fields': 'a.b' } }],
  listNetworkAggregates: [{ query: { addresses: address, keys: 'fuzz', sortBy: 'creation_time' } }, {}],
  listOwnedAggregates: [
    { params: { address }, query: { keys: 'fuzz', with_info: true } },
    { params: { address }, query: { keys: 'fuzz', with_info: 'True', limit: 1 } },
    { params: { address }, query: { keys: 'fuzz', value_only: true } },
    { params: { address }, query: { keys: 'fuzz', value_only: '1' } },
  ],
  listProgramsOnMessage: [{ query: { sort_order: 1 } }, {}],
  listAddressFiles: [{ params: { address }, query: { page: 1, pagination: 2, sortOrder: 1 } }],
  getAddressStats: [{ query: { 'addresses[]': address } }, {}],
  listAddressStats: [{ query: { addressContains: '0x', sortBy: 'POST', sortOrder: 1, pagination: 2 } }],
  listBalances: [{ query: { chains: 'ETH', min_balance: 1, page: 1, pagination: 2 } }],
  listCreditBalances: [{ query: { min_balance: 0.5, pagination: 2, cursor: '' } }, {}],
  getCreditSummary: [
    {
      params: { address },
      query: { direction: 'incoming', has_expiration: false, startDate: 1, endDate: 0 },
    },
  ],
  listGranted: [{ params: { address }, query: { grantee: monitor.address, types: 'POST', pagination: 2 } }],
  listReceived: [{ params: { address }, query: { granter: monitor.address, channels: 'a', page: 1 } }],
  getUpload: [{ params: { hash: '0'.repeat(64) }, query: { address, size: 5 } }],
  publishMessage: [{ body: published }, { body: { ...published, data: message } }],
  publishIpfsMessage: [{ body: published }],
  listInstances: [{ query: { ...list.query, address, status: 'running' } }],
  getIpfsFile: [{ params: { hash: directory } }],
  getIpfsPath: [{ params: { hash: directory, '*': 'below' } }],
  getGatewayFile: [{ params: { hash: directory }, query: { format: 'raw', filename: 'a.bin' } }],
  getGatewayPath: [
    {
      params: { hash: directory, '*': 'below/a' },
      query: { format: 'car', 'dag-scope': 'entity', 'entity-bytes': '0:*', 'car-order': 'dfs' },
    },
  ],
  getCoreMeasurements: [measured],
  getComputeMeasurements: [measured, { params: measured.params }],
  getCoreHistory: [{ params: measured.params }],
  getComputeHistory: [{ params: measured.params, query: { step: 3_600, count: 400 } }],
  getBalance: [{ params: { address }, query: { time: 4_000_000_000 } }],
  listCreditHistory: [{ params: { address }, query: { ...list.query, kind: 'expense' } }],
  listCosts: [{ query: { address, include_details: 1, include_size: true, pagination: 2 } }],
  getCost: [{ params: { item_hash: instance.itemHash }, query: { include_size: true } }],
  estimateCost: [{ body: { message: { ...estimated, item_content: JSON.stringify(networkInstance) } } }],
  estimateInstanceCost: [{ body: networkInstance }],
  listCharges: [{ query: { kind: 'instance', limit: 2 } }],
  listAccounts: [{ query: { after: '', limit: 2 } }],
  getMessage: [{ params: { hash: instance.itemHash }, query: { bodies: 'shared' } }],
  getInstance: [{ params: { instance_id: instance.itemHash }, query: { bodies: 'shared' } }],
  listEvents: [{ query: { cursor: '0', limit: 2 } }],
  readMessages: [{ query: { place: '' } }],
  listChainEvents: [chain],
  listChainTransactions: [chain],
  generateRandom: [{ body: draw }],
  // Nothing listens there.
  checkReachability: [{ body: { url: 'http://127.0.0.1:9', nonce: '0'.repeat(64) } }],
  proveCoreNode: [{ query: { challenge: 'ab'.repeat(32), place: 'https://core.example.org' } }],
  verifyRandom: [{ body: { ...draw, value: 1, proof: '0x00' } }],
};

const isFuzzed = (id: string) => Object.hasOwn(REQUESTS, id);
const api = Object.fromEntries(Object.entries(CORE_API).filter(([id]) => isFuzzed(id))) as Fuzzed;

describe('what the contract refuses, the server refuses', () => {
  let core: TestCore;
  before(async () => {
    const limits = { ...rateLimitsOf(readConfig(coreConfig, {})), isEnabled: false };
    core = await createTestCore({ indexer: QUIET_CHAIN, settings: { limits } });
    for (const { body } of messages) await core.post('/messages', body);
    for (const block of dag.blocks)
      await (await core.blobs.receive(Readable.from([block]), block.length)).keep();
  });
  after(() => core[Symbol.asyncDispose]());
  testContract(() => core.api, api, REQUESTS);
});
