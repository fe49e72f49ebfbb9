import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { buildNetworkMessage, type NetworkDraft, type Signer } from '@skerry/client';
import { CREDIT_CHANNEL, CREDIT_POST, checksumAddress } from '@skerry/protocol';
import { QUIET_CHAIN } from '../../testing/contract/indexer.ts';
import { createTestCore, signers, type TestCore } from '../../testing/core.ts';

/** What deployed clients ask of addresses, on messages as their SDKs sign them: with a checksum in the address. */

const spelled = (signer: Signer): Signer => ({ ...signer, address: checksumAddress(signer.address) });
const alice = spelled(signers.alice);
const bob = spelled(signers.bob);
const T0 = 1_700_000_000;

describe('addresses, as deployed nodes answer of them', () => {
  let core: TestCore;
  before(async () => {
    core = await createTestCore({ indexer: QUIET_CHAIN });
  });
  after(() => core[Symbol.asyncDispose]());

  const send = async (draft: NetworkDraft, signer: Signer = alice): Promise<string> => {
    const { body, itemHash } = buildNetworkMessage(draft, signer);
    const answer = await core.post('/messages', body);
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
    return itemHash;
  };
  const get = async (path: string) => {
    const { status, body } = await core.get(path);
    assert.equal(status, 200, `${path}: ${JSON.stringify(body)}`);
    return body;
  };
  const keep = async (text: string): Promise<string> =>
    (await core.post('/storage/add_json', JSON.stringify(text))).body.hash;
  const post = (type: string, channel: string, time: number): NetworkDraft => ({
    ...{ type: 'POST', channel, time },
    content: { type, content: { type } },
  });

  test('addresses come back as their owners spell them, and times as they were sent', async () => {
    const hash = await send({
      ...{ type: 'AGGREGATE', time: T0 + 5.5 },
      content: { key: 'spelled', content: { a: 1 }, time: T0 },
    });
    const { message } = await get(`/messages/${hash}`);
    assert.deepEqual([message.sender, message.time, message.content.time], [alice.address, T0 + 5.5, T0]);
    const [row] = (await get('/messages.json?contentKeys=spelled')).messages;
    assert.deepEqual([row.time, row.content.address], [T0 + 5.5, alice.address]);
    for (const path of ['/aggregates.json?keys=spelled', '/aggregates?keys=spelled']) {
      const { aggregates, ...pagination } = await get(path);
      assert.equal(aggregates[0].address, alice.address);
      assert.deepEqual(
        [pagination.pagination_total, pagination.pagination_page, pagination.pagination_item],
        [1, 1, 'aggregates'],
      );
    }
    const [strict] = (await get('/aggregates.json?keys=spelled')).aggregates;
    assert.deepEqual(Object.keys(strict), ['address', 'key', 'content', 'created', 'last_updated']);
    assert.equal((await get(`/aggregates/${alice.address}.json`)).address, alice.address);
    assert.deepEqual(await get(`/aggregates/${alice.address}.json?keys=spelled&value_only=True`), { a: 1 });
    const named = await send(post('spelled', 'c', T0));
    const [v0] = (await get('/posts.json?types=spelled')).posts;
    assert.deepEqual([v0.hash, v0.sender, v0.address], [named, alice.address, alice.address]);
    assert.equal((await get(`/addresses/${alice.address}/balance`)).address, alice.address);
  });

  test('an address that no chain has is no empty account, unless something here names it', async () => {
    const name = 'nobody-at-all';
    const asked = [
      ...['balance', 'credit_history', 'credit_history/summary', 'files', 'post_types', 'channels'].map(
        (what) => (address: string) => `/addresses/${address}/${what}`,
      ),
      (address: string) => `/costs?address=${address}`,
      (address: string) => `/authorizations/granted/${address}.json`,
      (address: string) => `/authorizations/received/${address}.json`,
      (address: string) => `/instances?address=${address}`,
      (address: string) => `/addresses/${address}/index_requests`,
    ];
    const answered = async (address: string) =>
      Promise.all(
        asked.map(async (pathOf) => {
          const { status, body } = await core.get(pathOf(address));
          return [status, body.code];
        }),
      );
    // Deployed clients look for 422 (docs/decisions.md 8).
    const refused = asked.map((_, n) => [n < asked.length - 2 ? 422 : 400, 'INVALID_ADDRESS']);
    const fine = asked.map(() => [200, undefined]);
    for (const mistyped of ['abc', '0xc4ba10dd', name]) assert.deepEqual(await answered(mistyped), refused);
    // Of every case, whatever the checksum: SDKs send all of them.
    for (const address of [alice.address, `0x${'aB'.repeat(20)}`, 'tz1VSUr8wwNhLAzempoch5d6hLRiTh8Cjcjb'])
      assert.deepEqual(await answered(address), fine);
    const credits = [{ address: name, amount: 7, ref: 'granted before anybody checked' }];
    await send(
      {
        ...{ type: 'POST', channel: CREDIT_CHANNEL },
        content: { type: CREDIT_POST.distribution, content: { distribution: { credits } } },
      },
      signers.credit,
    );
    assert.deepEqual(await answered(name), fine);
    assert.equal((await get(`/addresses/${name}/balance?time=4000000000`)).credit_balance, 7);
  });

  test('aggregates by their first change, both ways, by pages and by cursors', async () => {
    const keys = ['s0', 's1', 's2', 's3', 's4'];
    for (const [n, key] of keys.entries()) {
      await send({ type: 'AGGREGATE', time: T0 + n, content: { key, content: { n } } });
      await send({ type: 'AGGREGATE', time: T0 + 100 - n, content: { key, content: { again: n } } });
    }
    const asked = `keys=${keys.join()}`;
    const keysOf = (body: { aggregates: { key: string }[] }) => body.aggregates.map((one) => one.key);
    for (const path of ['/aggregates', '/aggregates.json']) {
      assert.deepEqual(keysOf(await get(`${path}?${asked}`)), keys);
      assert.deepEqual(keysOf(await get(`${path}?${asked}&sortBy=creation_time`)), keys.toReversed());
      assert.deepEqual(keysOf(await get(`${path}?${asked}&sortBy=creation_time&sortOrder=1`)), keys);
      assert.deepEqual(keysOf(await get(`${path}?${asked}&pagination=2&page=2`)), ['s2', 's3']);
      for (const order of ['sortOrder=1', 'sortBy=creation_time']) {
        const found: string[] = [];
        for (let cursor = ''; ; ) {
          const body = await get(`${path}?${asked}&${order}&pagination=2&cursor=${cursor}`);
          found.push(...keysOf(body));
          if (body.next_cursor === null) break;
          cursor = body.next_cursor;
        }
        assert.deepEqual(found, keys.toReversed(), order);
      }
    }
  });

  test('the files of an address, its types of posts, its channels, its numbers', async () => {
    const owner = spelled(signers.node);
    const files = [await keep('first'), await keep('the second')];
    const stored: string[] = [];
    for (const [n, item_hash] of files.entries())
      stored.push(
        await send(
          { type: 'STORE', time: T0 + n, channel: 'files', content: { item_type: 'storage', item_hash } },
          owner,
        ),
      );
    await send(post('b-type', 'z', T0), owner);
    await send(post('a-type', 'y', T0), owner);
    await send(post('a-type', 'y', T0 + 1), owner);
    const listed = await get(`/addresses/${owner.address}/files?sort_order=1`);
    assert.deepEqual(listed, {
      ...{ address: owner.address, total_size: 19 },
      files: files.map((file_hash, n) => ({
        ...{ file_hash, size: n === 0 ? 7 : 12, type: 'file', item_hash: stored[n] },
        created: new Date((T0 + n) * 1000).toISOString(),
      })),
      ...{ pagination_per_page: 100, pagination_page: 1, pagination_total: 2 },
    });
    const one = await get(`/addresses/${owner.address}/files?file_hash=${files[1]}&pagination=1`);
    assert.deepEqual([one.total_size, one.files.length], [12, 1]);
    assert.deepEqual((await get(`/addresses/${owner.address}/post_types`)).post_types, ['a-type', 'b-type']);
    assert.deepEqual((await get(`/addresses/${owner.address}/channels`)).channels, ['files', 'y', 'z']);
    const { channels } = await get('/channels/list.json');
    for (const channel of ['files', 'y', 'z']) assert.ok(channels.includes(channel));
    const stats = { messages: 5, aggregate: 0, forget: 0, instance: 0, post: 3, program: 0, store: 2 };
    const v0 = await get(`/addresses/stats.json?addresses%5B%5D=${owner.address}&addresses%5B%5D=nobody`);
    assert.deepEqual(v0, { data: { [owner.address]: stats } });
    const answer = await core.api.inject({
      url: `/api/v1/addresses/stats.json?addressContains=${owner.address.slice(2, 12)}&sortBy=STORE`,
    });
    assert.deepEqual(answer.json(), {
      data: { [owner.address]: stats },
      ...{ pagination_per_page: 20, pagination_page: 1, pagination_total: 1, pagination_item: 'addresses' },
    });
  });

  test('permissions, given and received, as they were written', async () => {
    const note = { address: bob.address, types: ['POST'], channels: ['notes'] };
    const all = { address: bob.address };
    const other = { address: checksumAddress(signers.monitor.address), chain: 'ETH' };
    const authorizations = [note, all, other];
    await send({
      type: 'AGGREGATE',
      channel: 'security',
      content: { key: 'security', content: { authorizations } },
    });
    const { address: _one, ...noteLeft } = note;
    const { address: _two, ...otherLeft } = other;
    const granted = `/authorizations/granted/${alice.address}.json`;
    const numbers = { pagination_per_page: 20, pagination_page: 1, pagination_item: 'authorizations' };
    assert.deepEqual(await get(granted), {
      authorizations: { [bob.address]: [noteLeft, {}], [other.address]: [otherLeft] },
      ...{ ...numbers, pagination_total: 2, address: alice.address },
    });
    const of = async (query: string) => (await get(`${granted}?${query}`)).authorizations;
    assert.deepEqual(await of('types=STORE'), { [bob.address]: [{}], [other.address]: [otherLeft] });
    assert.deepEqual(await of(`grantee=${bob.address}&channels=notes,other`), {
      [bob.address]: [noteLeft, {}],
    });
    assert.deepEqual(await of('chains=SOL'), { [bob.address]: [noteLeft, {}] });
    assert.deepEqual(await of('pagination=1&page=2'), { [other.address]: [otherLeft] });
    for (const address of [bob.address, signers.bob.address])
      assert.deepEqual(await get(`/authorizations/received/${address}.json`), {
        authorizations: { [alice.address]: [noteLeft, {}] },
        ...{ ...numbers, pagination_total: 1, address },
      });
    for (const granter of [alice.address, checksumAddress(alice.address)])
      assert.deepEqual(
        (await get(`/authorizations/received/${bob.address}.json?granter=${granter}`)).authorizations,
        { [alice.address]: [noteLeft, {}] },
      );
    const none = await get(`/authorizations/received/${bob.address}.json?granter=${bob.address}`);
    assert.deepEqual(none.authorizations, {});
    // What no chain has for an address, others may permit as well.
    const named = await get(`/authorizations/received/somebody.json?granter=${bob.address}`);
    assert.deepEqual(named.authorizations, {});
  });

  test('credit: histories by every filter, sums, balances of all', async () => {
    const owner = signers.otherNode.address;
    const write = (kind: 'distribution' | 'expense', terms: object, credits: object[]) =>
      core.send(signers.credit, {
        ...{ type: 'POST', channel: CREDIT_CHANNEL },
        content: { type: CREDIT_POST[kind], content: { [kind]: { ...terms, credits } } },
      });
    const bought = {
      address: owner,
      amount: 3_000,
      provider: 'transfer',
      payment_method: 'token',
      ref: 'one',
    };
    await write('distribution', { token: 'USDC', chain: 'ETH' }, [bought]);
    await write('distribution', {}, [{ address: owner, amount: 2_000, payment_method: 'card', ref: 'two' }]);
    const history = async (query: string) => {
      const body = await get(`/addresses/${owner}/credit_history?${query}`);
      const refs = body.credit_history.map((row: { origin_ref: string }) => row.origin_ref);
      assert.equal(body.pagination_total, refs.length, query);
      return refs.sort();
    };
    const expected: [string, string[]][] = [
      ['', ['one', 'two']],
      ['token=USDC', ['one']],
      ['chain=SOL', []],
      ['provider=transfer&chain=ETH', ['one']],
      ['payment_method=card', ['two']],
      ['exclude_payment_method=card', ['one']],
      ['origin_ref=two', ['two']],
      ['direction=outgoing', []],
      ['direction=incoming', ['one', 'two']],
      ['direction=incoming&kind=expense', []],
      ['has_expiration=True', []],
      ['has_expiration=False', ['one', 'two']],
      ['endDate=5', []],
      ['endDate=0&startDate=5', ['one', 'two']],
      ['resourceTypes=STORE', []],
    ];
    for (const [query, refs] of expected) assert.deepEqual(await history(query), refs, query);
    const largest = await get(`/addresses/${owner}/credit_history?sort_by=amount&pagination=1&page=2`);
    assert.deepEqual(
      [largest.credit_history[0].amount, largest.pagination_per_page, largest.pagination_total],
      [2_000, 1, 2],
    );
    assert.deepEqual(await get(`/addresses/${owner}/credit_history/summary?payment_method=card`), {
      ...{ address: owner, entry_count: 1, total_amount: 2_000, total_incoming: 2_000, total_outgoing: 0 },
    });
    const balances = await get('/credit_balances?min_balance=5000');
    assert.deepEqual(balances.credit_balances, [{ address: owner, credits: 5_000 }]);
    assert.deepEqual((await get('/credit_balances?minBalance=5001')).credit_balances, []);
    assert.deepEqual((await get('/balances?chains=ETH')).balances, []);
    const balance = await get(`/addresses/${owner}/balance?chain=ETH&include_credit_details=True`);
    assert.deepEqual(balance.credit_balance_details, [{ expiration_date: null, amount: 5_000 }]);
  });

  test('what waits has its time as text; what is forgotten leaves a skeleton', async () => {
    const draft: NetworkDraft = {
      ...{ type: 'STORE', time: T0 },
      content: { item_type: 'storage', item_hash: 'ee'.repeat(32), payment: { type: 'hold', chain: 'ETH' } },
    };
    const { body, itemHash } = buildNetworkMessage(draft, alice);
    assert.equal((await core.post('/messages', body)).status, 202);
    const [waiting] = (await get(`/messages/${itemHash}`)).messages;
    assert.equal(waiting.time, new Date(T0 * 1000).toISOString());
    assert.match(waiting.reception_time, /^\d{4}-/);
    assert.equal('confirmed' in waiting, false);
    const forget = await send({ type: 'FORGET', content: { hashes: [itemHash] } });
    await core.rooms.pipeline.idle();
    const { message, forgotten_by } = await get(`/messages/${itemHash}`);
    assert.deepEqual(forgotten_by, [forget]);
    const { forgotten_at, size, ...skeleton } = message;
    assert.match(forgotten_at, /^\d{4}-/);
    assert.equal(
      size,
      Buffer.byteLength((JSON.parse(body) as { message: { item_content: string } }).message.item_content),
    );
    assert.deepEqual(skeleton, {
      ...{ item_hash: itemHash, type: 'STORE', chain: 'ETH', sender: alice.address, item_type: 'inline' },
      ...{ signature: skeleton.signature, time: T0, channel: skeleton.channel },
      ...{ owner: signers.alice.address, payment_type: 'hold' },
    });
  });

  test('of a forgotten envelope the size of what was signed is told, in lists as alone', async () => {
    const content = { type: 'note', content: { text: 'for a while' } };
    const { body } = await core.send(signers.alice, { type: 'POST', content });
    const post = body.item_hash;
    const { signed_text } = await get(`/messages/${post}`);
    await core.send(signers.alice, { type: 'FORGET', content: { hashes: [post] } });
    await core.rooms.pipeline.idle();
    const { messages } = await get(`/messages.json?msgStatuses=forgotten&hashes=${post}`);
    const size = Buffer.byteLength(signed_text);
    assert.deepEqual([messages[0].size, (await get(`/messages/${post}`)).message.size], [size, size]);
  });
});
