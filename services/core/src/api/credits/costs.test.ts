import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { buildNetworkMessage } from '@skerry/client';
import {
  CREDIT_CHANNEL,
  CREDIT_POST,
  DEFAULT_PRICES,
  formatDecimal,
  instanceNeeds,
  programNeeds,
  type ResourceNeeds,
  rateOf,
  storageNeeds,
} from '@skerry/protocol';
import fc from 'fast-check';
import { NO_HASH } from '../../testing/contract/case.ts';
import { networkInstance } from '../../testing/contract/costs.ts';
import { createTestCore, instanceContent, signers, type TestCore } from '../../testing/core.ts';

const { alice, bob, credit } = signers;

let core: TestCore;
before(async () => {
  core = await createTestCore();
});
after(() => core[Symbol.asyncDispose]());

const textOf = (nano: bigint) => {
  const [whole, fraction = ''] = formatDecimal(nano, 9).split('.');
  return `${whole}.${fraction.padEnd(18, '0')}`;
};
const costOf = (needs: ResourceNeeds) => textOf(rateOf(needs, DEFAULT_PRICES[needs.kind]));

const estimate = async (type: string, content: object) => {
  const message = { type, item_type: 'inline', item_hash: NO_HASH, item_content: JSON.stringify(content) };
  return core.post('/price/estimate', JSON.stringify({ message }));
};

describe('estimates', () => {
  test('an instance of any size costs what the rules say, part by part, under both routes', () =>
    fc.assert(
      fc.asyncProperty(
        fc.record({
          vcpus: fc.integer({ min: 1, max: 32 }),
          memory: fc.integer({ min: 128, max: 65_536 }),
          size_mib: fc.integer({ min: 1, max: 1_000_000 }),
        }),
        async ({ vcpus, memory, size_mib }) => {
          const content = {
            ...networkInstance,
            resources: { vcpus, memory, seconds: 30 },
            rootfs: { ...networkInstance.rootfs, size_mib },
          };
          const needs = instanceNeeds({ cpu: vcpus, memory, disk: Math.ceil(size_mib / 1024) });
          const { status, body } = await core.post('/price/estimate/instance', JSON.stringify(content));
          assert.deepEqual([status, body.cost, body.payment_type], [200, costOf(needs), 'credit']);
          const nano = (text: string) => BigInt(text.replace('.', '')) / 10n ** 9n;
          const parts = body.detail.map((part: { cost_credit: string }) => nano(part.cost_credit));
          assert.equal(
            parts.reduce((sum: bigint, part: bigint) => sum + part, 0n),
            nano(body.cost),
          );
          assert.deepEqual((await estimate('INSTANCE', content)).body, body);
        },
      ),
      { numRuns: 25 },
    ));

  test('an instance that is nested deeper than JSON may be is refused', async () => {
    const levels = 4_000;
    const { status, body } = await core.post(
      '/price/estimate/instance',
      `{"a":${'['.repeat(levels)}${']'.repeat(levels)}}`,
    );
    assert.deepEqual(
      [status, body.code, /more than 64 levels/.test(body.error)],
      [422, 'INVALID_JSON', true],
    );
  });

  test('a program may say how large its code will be; it counts twice with the internet', async () => {
    const program = {
      address: alice.address,
      time: 1,
      type: 'vm-function',
      allow_amend: false,
      code: {
        encoding: 'zip',
        entrypoint: 'main:app',
        ref: NO_HASH,
        use_latest: true,
        estimated_size_mib: 7,
      },
      runtime: { ref: NO_HASH, use_latest: true, comment: '' },
      on: { http: true },
      environment: { internet: true, aleph_api: true, reproducible: false, shared_cache: false },
      resources: { vcpus: 1, memory: 128, seconds: 30 },
      volumes: [{ ref: NO_HASH, use_latest: true, mount: '/data', estimated_size_mib: 3 }],
      variables: {},
    };
    const needs = programNeeds({ vcpus: 1, memoryMib: 128, internet: true });
    const { body } = await estimate('PROGRAM', program);
    assert.deepEqual(
      [body.cost, body.charged_address, body.detail.length],
      [costOf(needs), alice.address, 1],
    );
  });

  test('a file costs its size: what the node knows before what the client says', async () => {
    const content = { address: bob.address, time: 1, item_type: 'storage', item_hash: NO_HASH };
    const said = (await estimate('STORE', { ...content, estimated_size_mib: 2.5 })).body;
    assert.deepEqual([said.cost, said.detail[0].size_mib], [costOf(storageNeeds(3 * 1024 * 1024)), 3]);
    const { body: added } = await core.post('/storage/add_file', Buffer.alloc(2 * 1024 * 512), {
      'content-type': 'application/octet-stream',
    });
    const known = await estimate('STORE', { ...content, item_hash: added.hash, estimated_size_mib: 900 });
    assert.equal(known.body.detail[0].size_mib, 1);
    const largest = await estimate('STORE', { ...content, estimated_size_mib: 8_589_934_591 });
    assert.equal(largest.body.detail[0].size_mib, 8_589_934_591);
    const wrong = [-1, '5', true, [1], 8_589_934_592, 1e300];
    for (const estimated_size_mib of wrong)
      assert.deepEqual((await estimate('STORE', { ...content, estimated_size_mib })).body, {
        error: 'content.estimated_size_mib must be a number from 0 to 8589934591',
        ...{ status: 'error', code: 'INVALID_CONTENT' },
      });
    const unsaid = await estimate('STORE', { ...content, estimated_size_mib: null });
    assert.equal(unsaid.body.code, 'FILE_NOT_FOUND');
  });

  test('an estimate is what the message costs once it is there', async () => {
    const content = {
      ...networkInstance,
      time: Date.now() / 1000,
      authorized_keys: [instanceContent.ssh_key],
      rootfs: { ...networkInstance.rootfs, size_mib: 40_960 },
    };
    const estimated = (await estimate('INSTANCE', content)).body;
    const { body, itemHash } = buildNetworkMessage({ type: 'INSTANCE', content }, alice);
    assert.equal((await core.post('/messages', body)).status, 200);
    const { body: price } = await core.get(`/price/${itemHash}?include_size=True`);
    assert.deepEqual(price, estimated);
    assert.deepEqual(
      price.detail.map((part: { type: string; size_mib: number | null }) => [part.type, part.size_mib]),
      [
        ['EXECUTION', null],
        ['EXECUTION_INSTANCE_VOLUME_ROOTFS', 20_480],
      ],
    );
    const { body: unsized } = await core.get(`/price/${itemHash}`);
    assert.deepEqual([unsized.cost, unsized.detail[1].size_mib], [price.cost, null]);
  });
});

describe('costs', () => {
  const charge = (ref: string, nanocredits: string) =>
    core.send(credit, {
      type: 'POST',
      channel: CREDIT_CHANNEL,
      content: {
        type: CREDIT_POST.expense,
        content: {
          expense: {
            start_date: 1_700_000_000,
            end_date: 1_700_003_600,
            credits: [{ address: bob.address, ref, nanocredits }],
          },
        },
      },
    });

  test('of an owner, of one message, of everybody; as much of it as is asked for', async () => {
    const { body: made } = await core.send(bob, { type: 'INSTANCE', content: instanceContent });
    await core.send(bob, { type: 'INSTANCE', content: { ...instanceContent, cpu: 2 } });
    await charge(made.item_hash, '7999999000');
    const one = costOf(instanceNeeds(instanceContent));
    const three = costOf({ kind: 'instance', units: 3, mib: 0 });

    const asked = bob.address.toUpperCase().replace('0X', '0x');
    const { body: own } = await core.get(`/costs?address=${asked}`);
    assert.deepEqual(own, {
      summary: {
        total_consumed_credits: 7,
        total_cost_hold: '0.000000000000000000',
        total_cost_stream: '0.000000000000000000',
        total_cost_credit: three,
        resource_count: 2,
      },
      filters: { address: asked, item_hash: null, payment_type: 'credit' },
    });
    const { body: listed } = await core.get(
      `/costs?address=${bob.address}&include_details=1&pagination=1&page=2`,
    );
    assert.deepEqual(
      [listed.resources.length, listed.pagination_total, listed.pagination_page, listed.summary],
      [1, 2, 2, own.summary],
    );
    const { body: single } = await core.get(`/costs?item_hash=${made.item_hash}&include_details=2`);
    const [resource] = single.resources;
    assert.deepEqual(
      [resource.cost_credit, resource.consumed_credits, resource.detail[0].cost_credit],
      [one, 7, one],
    );
    const exact = { consumed_credits: 7, consumed_credits_nano: '7999999000' };
    assert.deepEqual(resource, { ...resource, ...exact });
    const { body: used } = await core.get(`/messages/${made.item_hash}/consumed_credits`);
    assert.deepEqual(used, { item_hash: made.item_hash, ...exact });
    const { body: all } = await core.get('/costs');
    assert.ok(all.summary.resource_count >= 2);
  });

  test('nothing is paid by tokens', async () => {
    const { body } = await core.get('/costs?payment_type=hold&include_details=2');
    assert.deepEqual([body.summary.resource_count, body.resources], [0, []]);
  });

  test('without a token of the settings nobody is the operator', async () => {
    await using other = await createTestCore({ settings: { operatorToken: undefined } });
    const { status, body } = await other.post('/price/recalculate', '', { 'x-auth-token': 'undefined' });
    assert.deepEqual([status, body.code], [403, 'CREDENTIAL_REFUSED']);
  });
});
