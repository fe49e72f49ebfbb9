import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { buildNetworkMessage } from '@skerry/client';
import { sha256Hex } from '@skerry/protocol';
import { CORE_API } from '@skerry/protocol/api/core/index';
import type { Operation } from '@skerry/protocol/api/operation';
import { FILE_BYTES, given, NO_HASH, signedCall } from '../../testing/contract/case.ts';
import { networkInstance } from '../../testing/contract/costs.ts';
import { createTestCore, OPERATOR_TOKEN, signers, type TestCore } from '../../testing/core.ts';

/** What the contract says of its differences from deployed nodes is so (docs/compatibility.md): a check for each note. */

const { alice, monitor } = signers;
const NOBODY = '0x00000000000000000000000000000000000000AA';
const LARGEST_PAGE = 10_000;
const JSON_TYPE = { 'content-type': 'application/json' };

type Check = (core: TestCore) => Promise<void>;

async function ok(core: TestCore, path: string, headers?: Record<string, string>) {
  const answer = await core.get(path, headers);
  assert.equal(answer.status, 200, `${path}: ${JSON.stringify(answer.body)}`);
  return answer.body;
}

async function statusOf(core: TestCore, path: string, expected: number): Promise<void> {
  assert.equal((await core.get(path)).status, expected, path);
}

const outside = async (core: TestCore, url: string) => (await core.api.inject({ url })).body;

const post = (text: string) =>
  buildNetworkMessage({ type: 'POST', content: { type: 'note', content: { text } }, sync: false }, alice);

const asLargestPage =
  (path: string): Check =>
  async (core) => {
    assert.equal((await ok(core, `${path}?pagination=0`)).pagination_per_page, LARGEST_PAGE);
    await statusOf(core, `${path}?pagination=${LARGEST_PAGE + 1}`, 422);
  };

const asWritten =
  (path: string): Check =>
  async (core) => {
    const sent = '{"b": 1,\n "a": 2}';
    const { body } = await core.post(path, sent, JSON_TYPE);
    assert.equal(Buffer.from(await ok(core, `/storage/raw/${body.hash}`)).toString(), sent);
  };

const numbered = (core: TestCore, path: string) => statusOf(core, `${path}?cursor=`, 422);

/** The columns that deployed nodes leave out. */
const asMeasured =
  (kind: 'core' | 'compute'): Check =>
  async (core) => {
    const node_id = 'ab'.repeat(32);
    const record = { node_id, measured_at: Date.now() / 1000, asn: 64_512, version: '1' };
    const measured = { ccn: [], crn: [], [kind === 'core' ? 'ccn' : 'crn']: [record] };
    const content = {
      type: 'net-scoring-metrics',
      content: { version: '1.0', tags: [], metrics: measured },
    };
    await core.send(alice, { type: 'POST', channel: 'net-scoring', content });
    await statusOf(core, `/${kind}/${node_id}/metrics`, 404);
    await core.send(monitor, { type: 'POST', channel: 'net-scoring', content });
    const { metrics } = await ok(core, `/${kind}/${node_id}/metrics`);
    assert.deepEqual([metrics.asn, metrics.version], [[64_512], ['1']]);
  };

const estimate = (core: TestCore, path: string, body: unknown) =>
  core.post(`/price/estimate${path}`, JSON.stringify(body), JSON_TYPE);

function byCreditRules(price: { cost: string; detail: { cost_hold: string; cost_stream: string }[] }): void {
  assert.ok(Number(price.cost) > 0);
  for (const { cost_hold, cost_stream } of price.detail)
    assert.equal(Number(cost_hold) + Number(cost_stream), 0);
}

const asOperator =
  (path: (core: TestCore) => Promise<string>): Check =>
  async (core) => {
    const url = `/price/${await path(core)}recalculate`;
    assert.ok((await core.post(url, '', {})).status >= 401);
    const { status, body } = await core.post(url, '', { 'x-auth-token': OPERATOR_TOKEN });
    assert.deepEqual([status, body.recalculated_count], [200, 0]);
  };

/** A form as it goes out. */
async function bodyOf(form: FormData) {
  const response = new Response(form);
  const headers = { 'content-type': response.headers.get('content-type')! };
  return { headers, bytes: Buffer.from(await response.arrayBuffer()) };
}

const CHECKS: Readonly<Record<string, Check>> = {
  async submitMessage(core) {
    const { status, body } = await core.post('/messages', post('not waited for').body, JSON_TYPE);
    assert.deepEqual([status, body.message_status], [200, 'processed']);
    const damaged = post('forged').body.replace('"signature":"0x', '"signature":"0x00');
    assert.equal((await core.post('/messages', damaged, JSON_TYPE)).status, 422);
    const call = signedCall('/', { type: 'POST', content: { type: 'note', content: {} } });
    const envelope = JSON.parse(String(call.body));
    for (const [change, expected] of [
      [{ signature: `0x${'00'.repeat(65)}` }, 401],
      [{ signature: 7 }, 400],
    ] as const) {
      const { status } = await core.post('/messages', JSON.stringify({ ...envelope, ...change }), JSON_TYPE);
      assert.equal(status, expected);
    }
  },
  async getMessage(core) {
    const body = await ok(core, `/messages/${await given.message(core)}`);
    for (const field of ['status', 'message', 'reception_time', 'timestamp', 'content'])
      assert.ok(field in body);
  },
  async getMessageStatus(core) {
    const { status, reason } = await ok(core, `/messages/${await given.pending(core)}/status`);
    assert.deepEqual([status, reason.code], ['pending', 'FILE_NOT_FOUND']);
  },
  async getMessageContent(core) {
    await statusOf(core, `/messages/${await given.pending(core)}/content`, 409);
    await statusOf(core, `/messages/${await given.forgotten(core)}/content`, 410);
  },
  listNetworkMessages: asLargestPage('/messages.json'),
  listNetworkPosts: asLargestPage('/posts.json'),
  async listBalances(core) {
    await given.message(core);
    assert.deepEqual((await ok(core, '/balances')).balances, []);
  },
  addJson: asWritten('/storage/add_json'),
  addIpfsJson: asWritten('/ipfs/add_json'),
  async getFile(core) {
    const path = `/storage/${await given.file(core)}`;
    assert.ok(FILE_BYTES.equals(Buffer.from(await ok(core, path, { accept: '*/*' }))));
    const asked = await ok(core, path, { accept: 'application/json, text/plain, */*' });
    assert.equal(asked.content.trim(), FILE_BYTES.toString('base64'));
  },
  async getRawFile(core) {
    const path = `/storage/raw/${await given.file(core)}`;
    assert.equal((await core.get(path, { range: 'bytes=0-3' })).status, 206);
    const { headers } = await core.get(path);
    assert.equal((await core.get(path, { 'if-none-match': String(headers.etag) })).status, 304);
  },
  async getFileLimits(core) {
    const { storage } = await ok(core, '/storage/limits.json');
    assert.equal(storage.max_file_size, core.rooms.settings.uploadLimitBytes);
  },
  async addFile() {
    await using core = await createTestCore({ settings: { uploadLimitBytes: 32 * 1024 * 1024 } });
    const { storage } = await ok(core, '/storage/limits.json');
    const file = Buffer.alloc(storage.max_unauthenticated_upload_file_size + 1);
    const content = { item_type: 'storage', item_hash: sha256Hex(file) };
    const { body: metadata } = buildNetworkMessage({ type: 'STORE', content, sync: true }, alice);
    const parts: readonly (readonly [name: string, value: string | Blob])[] = [
      ['metadata', metadata],
      ['file', new Blob([file])],
    ];
    for (const [order, expected] of [
      [parts.toReversed(), 413],
      [parts, 200],
    ] as const) {
      const form = new FormData();
      for (const [name, value] of order) form.append(name, value as string);
      const { headers, bytes } = await bodyOf(form);
      assert.equal((await core.post('/storage/add_file', bytes, headers)).status, expected);
    }
  },
  async listAggregates(core) {
    await given.aggregate(core);
    const [one] = (await ok(core, '/aggregates')).aggregates;
    assert.ok('time' in one && 'item_hash' in one);
  },
  async listOwnedAggregates(core) {
    await given.aggregate(core);
    await ok(core, `/aggregates/${alice.address}.json?limit=1000`);
    await statusOf(core, `/aggregates/${alice.address}.json?limit=1001`, 422);
  },
  getCoreMeasurements: asMeasured('core'),
  getComputeMeasurements: asMeasured('compute'),
  async getBalance(core) {
    const { balance, locked_amount } = await ok(core, `/addresses/${NOBODY}/balance`);
    assert.deepEqual([balance, locked_amount], [0, 0]);
  },
  async listAddressFiles(core) {
    assert.deepEqual((await ok(core, `/addresses/${NOBODY}/files`)).files, []);
    await numbered(core, `/addresses/${NOBODY}/files`);
  },
  async listCreditHistory(core) {
    assert.deepEqual((await ok(core, `/addresses/${NOBODY}/credit_history`)).credit_history, []);
    await numbered(core, `/addresses/${NOBODY}/credit_history`);
  },
  async listAddressStats(core) {
    const response = await core.api.inject({ url: '/api/v1/addresses/stats.json?pagination=0' });
    assert.equal(response.json().pagination_per_page, 100);
    assert.equal((await core.api.inject({ url: '/api/v1/addresses/stats.json?cursor=' })).statusCode, 422);
  },
  async listCosts(core) {
    await given.instance(core);
    const { summary } = await ok(core, '/costs?pagination=1');
    assert.deepEqual([Number(summary.total_cost_hold), Number(summary.total_cost_stream)], [0, 0]);
    assert.ok(Number(summary.total_cost_credit) > 0);
  },
  async getCost(core) {
    await statusOf(core, `/price/${await given.message(core)}`, 404);
    await statusOf(core, `/price/${await given.pending(core)}`, 404);
    byCreditRules(await ok(core, `/price/${await given.instance(core)}`));
  },
  async estimateCost(core) {
    const message = { type: 'INSTANCE', item_type: 'inline', item_hash: NO_HASH };
    const item_content = JSON.stringify(networkInstance);
    byCreditRules((await estimate(core, '', { message: { ...message, item_content } })).body);
    assert.equal((await estimate(core, '', { message })).body.code, 'CONTENT_NOT_FOUND');
  },
  async estimateInstanceCost(core) {
    byCreditRules((await estimate(core, '/instance', networkInstance)).body);
  },
  recalculateCosts: asOperator(async () => ''),
  recalculateCost: asOperator(async (core) => `${await given.instance(core)}/`),
  async getConsumedCredits(core) {
    await statusOf(core, `/messages/${NO_HASH}/consumed_credits`, 404);
  },
  async getFront(core) {
    const { name, documents } = JSON.parse(await outside(core, '/'));
    assert.match(name, /core node/);
    assert.equal(documents.reference, '/api/v0/docs');
  },
  async getInfo(core) {
    const { trust } = await ok(core, '/info/public.json');
    assert.ok(trust.schedulers.value.length > 0);
  },
  async getDeployedMetrics(core) {
    const metrics = JSON.parse(await outside(core, '/metrics.json'));
    assert.ok(Object.values(metrics).includes(null));
  },
  async getMetrics(core) {
    const text = await outside(core, '/metrics');
    assert.match(text, /^pyaleph_/m);
    assert.match(text, /^skerry_/m);
  },
  async getDeployedDocument(core) {
    const { openapi, paths } = JSON.parse(await outside(core, '/api/docs/swagger.json'));
    assert.match(openapi, /^3\.1/);
    assert.ok('/api/v0/messages' in paths);
  },
  async getDeployedReference(core) {
    const page = await outside(core, '/api/docs');
    assert.match(page, /^<!doctype html>/i);
    assert.doesNotMatch(page, /swagger-ui/i);
  },
};

/** Notes that tests of their own check, since they need more than a node: CARs (store/ipfs/testing/ipfs-suite.ts). */
const ELSEWHERE = ['addIpfsCar'];

describe('what differs from deployed nodes', () => {
  let core: TestCore;
  before(async () => {
    core = await createTestCore();
  });
  after(() => core[Symbol.asyncDispose]());

  const noted = Object.entries(CORE_API as Readonly<Record<string, Operation>>).flatMap(([id, operation]) =>
    operation.deployed?.differs === undefined ? [] : [id],
  );

  test('each note has a check, and each check a note', () => {
    assert.deepEqual([...Object.keys(CHECKS), ...ELSEWHERE].sort(), noted.sort());
  });
  for (const [id, check] of Object.entries(CHECKS)) test(id, () => check(core));
});
