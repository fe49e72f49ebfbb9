import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { CoreClient, createSigner, type Signer } from '@skerry/client';
import { createTestCore, type TestCore } from '../testing/core.ts';

const T0 = 1_700_000_000;
let next = 1;
/** An owner that nobody wrote for yet. */
const newOwner = (): Signer => createSigner(`0x${(next++).toString(16).padStart(64, '3')}`);

describe('aggregates', () => {
  let core: TestCore;
  let owner: Signer;
  before(async () => {
    core = await createTestCore();
  });
  beforeEach(() => {
    owner = newOwner();
  });
  after(() => core[Symbol.asyncDispose]());

  async function write(at: number, content: object, key = 'profile', by = owner): Promise<string> {
    const draft = { type: 'AGGREGATE', content: { key, content }, timestamp: T0 + at, nonce: `${at}` };
    const { status, body } = await core.send(by, draft, '/aggregates');
    assert.equal(status, 200, body.error);
    return body.item_hash;
  }
  const read = async (key = 'profile') => (await core.get(`/aggregates/${owner.address}/${key}`)).body;

  test('each field belongs to the latest element that has it, whatever came first; null is a value', async () => {
    const last = await write(30, { name: 'third', gone: null });
    await write(10, { name: 'first', city: 'Oban', nested: { a: 1, b: 2 } });
    await write(20, { name: 'second', nested: { c: 3 } });
    const view = await read();
    assert.deepEqual(view.content, { city: 'Oban', gone: null, name: 'third', nested: { c: 3 } });
    assert.deepEqual([view.time, view.item_hash, view.address], [T0 + 30, last, owner.address]);
    assert.deepEqual(
      [Date.parse(view.created), Date.parse(view.last_updated)],
      [(T0 + 10) * 1000, (T0 + 30) * 1000],
    );
  });

  test('of changes that a client sends one after another, the last one counts, also within a second', async () => {
    const client = new CoreClient({ url: await core.listen(), signer: owner });
    const post = await client.postMessage({ type: 'POST', content: { type: 'note', content: { n: 0 } } });
    for (let n = 1; n <= 6; n++) {
      await client.postMessage({ type: 'AGGREGATE', content: { key: 'profile', content: { n } } });
      const amend = { type: 'amend', ref: post.item_hash, content: { n } };
      await client.postMessage({ type: 'POST', content: amend });
    }
    assert.deepEqual((await read()).content, { n: 6 });
    const amended = await core.get(`/posts.json?hashes=${post.item_hash}`);
    assert.deepEqual(amended.body.posts[0].content, { n: 6 });
  });

  test('of one second, the greater item hash counts', async () => {
    const both = await Promise.all(
      ['a', 'b', 'c'].map(async (name) => {
        const content = { key: 'profile', content: { name } };
        const { body } = await core.send(owner, { type: 'AGGREGATE', content, timestamp: T0, nonce: name });
        return [body.item_hash, name] as const;
      }),
    );
    assert.equal((await read()).content.name, both.sort().at(-1)![1]);
  });

  test('an element may be empty, hold anything at any depth, and name what JavaScript has names for', async () => {
    await write(1, {});
    assert.deepEqual((await read()).content, {});
    const content = {
      constructor: 1,
      toString: { hasOwnProperty: [] },
      '': 0,
      'a.b': 'é\u{1f600}',
      length: -1,
    };
    await write(2, content);
    assert.deepEqual((await read()).content, content);
    const inner = `{"key":"profile","content":{"x":{"__proto__":1}}}`;
    const text = `{"chain":"ETH","channel":"c","type":"AGGREGATE","timestamp":${T0},"content":${inner}}`;
    const body = `{"message":${text},"signature":"${owner.sign(text)}","address":"${owner.address}"}`;
    assert.equal((await core.post('/aggregates', body)).body.code, 'INVALID_JSON');
    await write(3, { fine: true }, '__proto__');
    assert.deepEqual((await read('__proto__')).content, { fine: true });
    const { body: file } = await core.get(`/aggregates/${owner.address}.json`);
    assert.deepEqual(Object.keys(file.data).sort(), ['__proto__', 'profile']);
  });

  test('keys and fields may be long; one that is too long is refused', async () => {
    const key = 'ключ-'.repeat(51);
    await write(1, { ['字'.repeat(256)]: 1 }, key);
    assert.deepEqual((await read(encodeURIComponent(key))).content, { ['字'.repeat(256)]: 1 });
    const content = { key: 'profile', content: { ['x'.repeat(257)]: 1 } };
    assert.equal((await core.send(owner, { type: 'AGGREGATE', content })).body.code, 'INVALID_CONTENT');
  });

  test('lists: by owner and keys, parts of the content alone, totals, pages and cursors', async () => {
    for (let n = 0; n < 5; n++)
      await write(n, { n, deep: { list: [{ id: n, more: 1 }], 'two words': n } }, `k${n}`);
    await write(9, { other: 1 }, 'other');
    const of = `/aggregates?address=${owner.address.toUpperCase().replace('0X', '0x')}`;
    const keysOf = (body: { aggregates: { key: string }[] }) => body.aggregates.map(({ key }) => key);
    const { body } = await core.get(`${of}&limit=4`);
    assert.deepEqual(keysOf(body), ['other', 'k4', 'k3', 'k2']);
    assert.deepEqual(body.pagination, { total: 6, page: 1, per_page: 4, total_pages: 2 });
    const rest = await core.get(`${of}&limit=4&cursor=${body.next_cursor}`);
    assert.deepEqual([keysOf(rest.body), rest.body.next_cursor], [['k1', 'k0'], null]);
    assert.deepEqual(keysOf((await core.get(`${of}&limit=4&page=2`)).body), ['k1', 'k0']);
    assert.deepEqual(keysOf((await core.get(`${of}&key=k1&keys=k2,none`)).body), ['k2', 'k1']);
    assert.equal((await core.get(`${of}&key=none`)).body.pagination.total, 0);
    const fields = encodeURIComponent('deep.list[*].id,deep["two words"],$.none');
    const parts = (await core.get(`${of}&content.fields=${fields}`)).body;
    assert.equal(parts.pagination.total, 5);
    assert.deepEqual(parts.aggregates[0].content, { deep: { list: [{ id: 4 }], 'two words': 4 } });
    assert.equal((await core.get(`${of}&content.fields=nowhere`)).body.pagination.total, 0);
  });

  test('the form of deployed nodes: all keys, some keys, limit, what is known of each, or the value alone', async () => {
    await write(1, { a: 1 }, 'one');
    const hash = await write(2, { b: 2 }, 'two');
    const file = (query = '') => core.get(`/aggregates/${owner.address}.json${query}`);
    assert.deepEqual((await file()).body, {
      address: owner.address,
      data: { one: { a: 1 }, two: { b: 2 } },
      info: {},
    });
    assert.deepEqual((await file('?keys=two,none')).body.data, { two: { b: 2 } });
    assert.deepEqual((await file('?limit=1')).body.data, { two: { b: 2 } });
    const { info } = (await file('?keys=two&with_info=true')).body;
    assert.equal(info.two.last_update_item_hash, hash);
    assert.equal(Date.parse(info.two.created), (T0 + 2) * 1000);
    assert.deepEqual((await file('?keys=two&value_only=true')).body, { b: 2 });
    assert.deepEqual([(await file('?keys=none')).status, (await file('?limit=1001')).status], [404, 422]);
  });

  test('forgetting an element puts back what was under it; the last one takes the aggregate with it', async () => {
    const first = await write(1, { name: 'first', city: 'Oban' });
    const second = await write(2, { name: 'second', age: 1 });
    const forget = async (hash: string, at: number) => {
      await core.send(owner, { type: 'FORGET', content: { hashes: [hash] }, timestamp: T0 + at });
      await core.rooms.pipeline.idle();
    };
    await forget(second, 3);
    const view = await read();
    assert.deepEqual([view.content, view.item_hash], [{ name: 'first', city: 'Oban' }, first]);
    await forget(first, 4);
    assert.equal((await core.get(`/aggregates/${owner.address}/profile`)).status, 404);
    assert.equal((await core.get(`/aggregates?address=${owner.address}`)).body.pagination.total, 0);
    await write(5, { again: true });
    assert.deepEqual((await read()).content, { again: true });
  });
});
