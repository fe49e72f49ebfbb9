import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { buildNetworkMessage, type NetworkDraft } from '@skerry/client';
import { createParser, sha256Hex } from '@skerry/protocol';
import type { TSchema } from '@skerry/protocol/type';
import { FILE_BYTES, formCall, NO_HASH } from '../testing/contract/case.ts';
import { networkInstance } from '../testing/contract/costs.ts';
import { createTestCore, SSH_KEY, signers, type TestCore } from '../testing/core.ts';
import {
  PriceAnswer,
  Published,
  StrictBalance,
  StrictFile,
  StrictMessage,
  StrictPost,
  StrictStats,
} from '../testing/strict-models.ts';

/** How Python's clients of the deployed network ask, and what they refuse in an answer (docs/compatibility.md). */

const { alice, bob } = signers;
const T0 = 1_700_000_000;
const HEADERS = {
  accept: '*/*',
  'accept-encoding': 'gzip, deflate',
  'user-agent': 'Python/3.12 aiohttp/3.11',
};
const JSON_HEADERS = { ...HEADERS, 'content-type': 'application/json' };

/** What pydantic takes for yes and for no. */
const SPELLINGS = { True: true, true: true, 1: true, False: false, false: false, 0: false };

// biome-ignore lint/suspicious/noExplicitAny: tests look into whatever came
type Frame = any;

const isSized = ({ detail }: Frame) => detail.some(({ size_mib }: Frame) => size_mib !== null);

type Value = string | number | boolean | readonly string[] | undefined;

/** Booleans as Python writes them, lists with commas; what is None is left out. */
function queryOf(params: Readonly<Record<string, Value>>): string {
  const written = Object.entries(params).flatMap(([name, value]): [string, string][] => {
    if (value === undefined) return [];
    if (typeof value === 'boolean') return [[name, value ? 'True' : 'False']];
    return [[name, typeof value === 'object' ? value.join(',') : String(value)]];
  });
  return written.length === 0 ? '' : `?${new URLSearchParams(written)}`;
}

const fits = (schema: TSchema, value: unknown, what: string) => createParser(schema, what)(value);

/** Fields that are null stand for fields that are left out. */
const withoutNulls = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value, (_key, one: unknown) => (one === null ? undefined : one)));

describe("Python's clients of the deployed network", () => {
  let core: TestCore;
  before(async () => {
    core = await createTestCore();
  });
  after(() => core[Symbol.asyncDispose]());

  const get = (path: string, params: Readonly<Record<string, Value>> = {}) =>
    core.get(`${path}${queryOf(params)}`, HEADERS);

  async function send(draft: NetworkDraft, signer = alice) {
    const made = buildNetworkMessage({ sync: true, ...draft }, signer);
    const answer = await core.post('/messages', made.body, JSON_HEADERS);
    assert.ok([200, 202].includes(answer.status), JSON.stringify(answer.body));
    fits(Published, answer.body, 'answer');
    return { ...made, ...answer };
  }

  const post = (text: string, more: object = {}): NetworkDraft => ({
    type: 'POST',
    content: { type: 'note', content: { text }, ...more },
  });

  /** Every kind of message that there is, each with all that it needs. */
  async function sendOfEveryKind(): Promise<string[]> {
    const machine = { ...networkInstance, metadata: null, variables: { A: 'b' }, authorized_keys: [SSH_KEY] };
    const { rootfs: _, environment, ...common } = machine;
    const stored = await send({
      type: 'STORE',
      content: { item_type: 'storage', item_hash: sha256Hex(FILE_BYTES) },
    });
    const program = {
      ...common,
      type: 'vm-function',
      code: { encoding: 'zip', entrypoint: 'main:app', ref: stored.itemHash, use_latest: true },
      runtime: { ref: stored.itemHash, use_latest: true, comment: '' },
      environment: { ...environment, reproducible: false, shared_cache: false },
      on: { http: true, persistent: false },
    };
    const first = await send({ ...post('first', { ref: null }), time: T0 + 0.125 });
    const drafts: NetworkDraft[] = [
      { type: 'POST', content: { type: 'amend', ref: first.itemHash, content: { text: 'amended' } } },
      { type: 'AGGREGATE', content: { key: 'profile', content: { a: null } } },
      { type: 'PROGRAM', content: program },
      { type: 'INSTANCE', content: machine },
      post('last', { ref: 'a-ref' }),
    ];
    const sent = [];
    for (const draft of drafts) sent.push((await send(draft)).itemHash);
    const forget = await send({ type: 'FORGET', content: { hashes: [sent.at(-1)!], reason: 'x' } });
    await core.rooms.pipeline.idle();
    return [stored.itemHash, first.itemHash, ...sent.slice(0, -1), forget.itemHash];
  }

  test('a file is sent with its message, and the same message is sent again: both are taken', async () => {
    const hash = sha256Hex(FILE_BYTES);
    const content = { item_type: 'storage', item_hash: hash, mime_type: 'text/plain' };
    const { body, itemHash } = buildNetworkMessage({ type: 'STORE', content, sync: true }, bob);
    const { path, headers, body: form } = formCall('/storage/add_file', { metadata: body }, FILE_BYTES);
    const added = await core.post(path, form as Buffer, { ...HEADERS, ...headers });
    assert.deepEqual([added.status, added.body.hash], [200, hash]);
    const again = await core.post('/messages', body, JSON_HEADERS);
    fits(Published, again.body, 'answer');
    assert.deepEqual([again.status, again.body.message_status], [200, 'processed']);
    const status = await get(`/messages/${itemHash}/status`);
    assert.equal(status.body.status, 'processed');
    const { status: raw, body: bytes } = await get(`/storage/raw/${hash}`);
    assert.deepEqual([raw, Buffer.from(bytes).equals(FILE_BYTES)], [200, true]);
  });

  test('messages have exactly the fields of their models, in lists and one by one', async () => {
    const sent = await sendOfEveryKind();
    const { status, body } = await get('/messages.json', {
      pagination: 200,
      page: 1,
      addresses: [alice.address],
    });
    assert.equal(status, 200);
    const listed = new Map<string, { content: unknown; item_content: string; type: string }>(
      body.messages.map((one: { item_hash: string }) => [one.item_hash, one]),
    );
    const compared: string[] = [];
    for (const hash of sent) {
      const { body: one } = await get(`/messages/${hash}`);
      if (one.status !== 'processed') continue;
      compared.push(one.message.type);
      for (const message of [listed.get(hash)!, one.message]) {
        fits(StrictMessage, message, `a ${message.type}`);
        const { confirmed, confirmations } = message as unknown as StrictFields;
        assert.ok(!confirmed || confirmations.length > 0);
        if (message.type === 'PROGRAM')
          assert.deepEqual(withoutNulls(message.content), withoutNulls(JSON.parse(message.item_content)));
      }
    }
    assert.deepEqual(compared, ['STORE', 'POST', 'POST', 'AGGREGATE', 'PROGRAM', 'INSTANCE', 'FORGET']);
  });

  interface StrictFields {
    readonly confirmed: boolean;
    readonly confirmations: readonly unknown[];
  }

  test('lists are read page by page, with every parameter written out', async () => {
    const channel = 'python-pages';
    for (const text of ['1', '2', '3']) await send({ ...post(text), channel });
    const seen: string[] = [];
    for (let page = 1; ; page++) {
      const { status, body } = await get('/messages.json', {
        pagination: 2,
        page,
        sortBy: 'time',
        sortOrder: -1,
        channels: [channel],
        msgTypes: ['POST', 'STORE'],
        startDate: T0 + 0.5,
        endDate: undefined,
      });
      assert.deepEqual(
        [status, body.pagination_page, body.pagination_per_page, body.pagination_total, body.pagination_item],
        [200, page, 2, 3, 'messages'],
      );
      if (body.messages.length === 0) break;
      seen.push(
        ...body.messages.map(
          ({ content }: { content: { content: { text: string } } }) => content.content.text,
        ),
      );
    }
    assert.deepEqual(seen, ['3', '2', '1']);
  });

  test('posts have exactly the fields of their model', async () => {
    const { status, body } = await get('/posts.json', { pagination: 200, page: 1, types: ['note'] });
    assert.equal(status, 200);
    assert.ok(body.posts.length > 0);
    for (const one of body.posts) fits(StrictPost, one, 'a post');
  });

  test('booleans are True and False', async () => {
    const { body } = await get(`/aggregates/${alice.address}.json`, { keys: ['profile'], with_info: true });
    assert.ok(body.info.profile.last_updated);
    const value = await get(`/aggregates/${alice.address}.json`, { keys: ['profile'], value_only: true });
    assert.deepEqual(value.body, { a: null });
    const plain = await get(`/aggregates/${alice.address}.json`, { limit: 100, with_info: false });
    assert.deepEqual([plain.status, plain.body.info], [200, {}]);
    for (const include_size of [true, false])
      assert.equal((await get('/costs', { address: alice.address, include_size })).status, 200);
    assert.equal((await get(`/aggregates/${signers.node.address}.json`, { limit: 100 })).status, 404);
  });

  test('a boolean has the spellings of Python, of JSON and of C', async () => {
    const address = `/aggregates/${alice.address}.json?keys=profile`;
    const questions: readonly (readonly [address: string, isYes: (body: Frame) => boolean])[] = [
      [`${address}&with_info`, (body) => 'profile' in body.info],
      [`${address}&value_only`, (body) => !('data' in body)],
      ['/messages/hashes?hash_only', (body) => typeof body.hashes[0] === 'string'],
      ['/messages.json?excludeContent', (body) => !('content' in body.messages[0])],
      [
        `/addresses/${alice.address}/balance?include_credit_details`,
        (body) => body.credit_balance_details !== null,
      ],
      ['/costs?include_details=2&include_size', (body) => body.resources.some(isSized)],
    ];
    for (const [question, isYes] of questions)
      for (const [value, expected] of Object.entries(SPELLINGS)) {
        const { status, body } = await get(`${question}=${value}`);
        assert.equal(status, 200, `${question}=${value}: ${JSON.stringify(body)}`);
        assert.equal(isYes(body), expected, `${question}=${value}`);
      }
    for (const value of ['', 'maybe', '2'])
      assert.equal((await get(`${address}&with_info=${value}`)).status, 422);
  });

  test('dates are seconds, with a fraction or without; a date in words is refused', async () => {
    const channel = 'python-dates';
    const times = [T0 + 1, T0 + 1.5, T0 + 2.25];
    for (const time of times) await send({ ...post(`at ${time}`), channel, time });
    const found = async (startDate: Value, endDate?: Value) =>
      (
        await get('/messages.json', { channels: [channel], startDate, endDate, sortOrder: 1 })
      ).body.messages.map(({ time }: { time: number }) => time);
    assert.deepEqual(await found(T0 + 1), times);
    assert.deepEqual(await found(`${T0 + 1}.0`), times);
    assert.deepEqual(await found(T0 + 1.25), times.slice(1));
    assert.deepEqual(await found('1.70000000125e+09', T0 + 2.25), [T0 + 1.5]);
    assert.deepEqual(await found(0, 0), times);
    for (const date of ['2023-11-14T22:13:20', '2023-11-14', 'now', 'nan', 'None'])
      for (const path of ['/messages.json', '/posts.json', '/messages/hashes'])
        assert.equal((await get(path, { startDate: date })).status, 422, `${path} ${date}`);
  });

  test('a list is one parameter with commas, of one value or of several', async () => {
    const channels = ['python-list-1', 'python-list-2'];
    for (const channel of channels) await send({ ...post('listed'), channel });
    await send({ ...post('listed'), channel: channels[0]! }, bob);
    const count = async (params: Readonly<Record<string, Value>>) =>
      (await get('/messages.json', params)).body.pagination_total;
    assert.equal(await count({ channels }), 3);
    assert.equal(await count({ channels: channels.slice(1) }), 1);
    assert.equal(await count({ channels, addresses: [alice.address] }), 2);
    assert.equal(await count({ channels, addresses: [alice.address, bob.address], chains: ['ETH'] }), 3);
    assert.equal((await get('/posts.json', { channels, types: ['note', 'other'] })).body.posts.length, 3);
  });

  test('pages are numbered in the query or in the path, or follow each other by a cursor', async () => {
    const channel = 'python-paging';
    for (const text of ['1', '2', '3']) await send({ ...post(text), channel });
    for (const list of ['messages', 'posts'] as const) {
      const hashes = (body: Frame): string[] => body[list].map((one: Frame) => one.item_hash);
      const query = { channels: [channel], pagination: 2 };
      const pages = [1, 2].map((page) => get(`/${list}.json`, { ...query, page }));
      const [first, second] = (await Promise.all(pages)).map(({ body }) => hashes(body));
      assert.deepEqual([first!.length, second!.length], [2, 1]);
      assert.deepEqual(hashes((await get(`/${list}/page/2.json`, query)).body), second);
      const followed: string[] = [];
      for (let cursor: string | null = ''; cursor !== null; ) {
        const { status, body } = await get(`/${list}.json`, { ...query, cursor });
        assert.deepEqual([status, 'pagination_total' in body, body.pagination_per_page], [200, false, 2]);
        followed.push(...hashes(body));
        cursor = body.next_cursor;
      }
      assert.deepEqual(followed, [...first!, ...second!]);
    }
  });

  test('files, statistics and balances have exactly the fields of their models', async () => {
    const { body: kept } = await get(`/addresses/${bob.address}/files`, { pagination: 100, page: 1 });
    assert.ok(kept.files.length > 0);
    for (const one of kept.files) fits(StrictFile, one, 'a file');
    const stats = await get('/addresses/stats.json', { 'addresses[]': alice.address });
    for (const one of Object.values(stats.body.data)) fits(StrictStats, one, 'statistics');
    const { status, body: balances } = await get('/balances', { pagination: 100, page: 1, min_balance: 0 });
    assert.equal(status, 200);
    for (const one of balances.balances) fits(StrictBalance, one, 'a balance');
  });

  test('what can never be is 422, and says why', async () => {
    const { body } = buildNetworkMessage(post('forged'), alice);
    const forged = JSON.parse(body);
    const refused = await core.post(
      '/messages',
      JSON.stringify({ ...forged, message: { ...forged.message, sender: bob.address } }),
      JSON_HEADERS,
    );
    assert.deepEqual([refused.status, refused.body.message_status], [422, 'rejected']);
    fits(Published, refused.body, 'answer');
    assert.equal((await get(`/messages/${NO_HASH}`)).status, 404);
  });

  test('prices and balances are read into models', async () => {
    const message = {
      ...{ sender: alice.address, chain: 'ETH', type: 'INSTANCE', time: T0, item_type: 'inline' },
      ...{ item_hash: NO_HASH, item_content: JSON.stringify(networkInstance), signature: '0x' },
      content: networkInstance,
    };
    const estimated = await core.post('/price/estimate', JSON.stringify({ message }), JSON_HEADERS);
    assert.equal(estimated.status, 200, JSON.stringify(estimated.body));
    fits(PriceAnswer, estimated.body, 'price');
    const { body } = await get(`/addresses/${alice.address}/balance`);
    for (const field of ['balance', 'locked_amount', 'credit_balance'])
      assert.equal(typeof body[field], 'number', field);
  });
});
