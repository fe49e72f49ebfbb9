import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { buildNetworkMessage, type NetworkDraft, type Signer } from '@skerry/client';
import { verifyShared } from '@skerry/protocol';
import { MESSAGE_FILTERS, namesIn } from '@skerry/protocol/api/core/common/filters';
import { createTestCore, signers, type TestCore } from '../../testing/core.ts';

/** What deployed clients ask of `/messages.json` and its like, and what a plain look at all messages gives. */

const T0 = 1_700_000_000;
const { alice, bob } = signers;

interface Listed {
  readonly item_hash: string;
  readonly type: string;
  readonly sender: string;
  readonly chain: string;
  readonly channel: string | null;
  readonly time: number;
  // biome-ignore lint/suspicious/noExplicitAny: contents of every type
  readonly content: any;
  readonly confirmations: readonly { readonly height: number }[];
  readonly status: string;
}

/** What a parameter is asked for, and which messages that means. */
interface Asked {
  readonly value: string;
  readonly fits: (one: Listed) => boolean;
}

describe('lists of deployed nodes', () => {
  let core: TestCore;
  let all: Listed[];
  let files: string[];
  before(async () => {
    core = await createTestCore();
    files = [await keep('one'), await keep('two')];
    for (let n = 0; n < 24; n++) await sendSome(n);
    await core.rooms.pipeline.idle();
    await confirmSome();
    all = await listAll();
  });
  after(() => core[Symbol.asyncDispose]());

  const keep = async (text: string): Promise<string> =>
    (await core.post('/storage/add_json', JSON.stringify(text))).body.hash;
  const send = async (draft: NetworkDraft, signer: Signer = alice): Promise<string> => {
    const { body, itemHash } = buildNetworkMessage(draft, signer);
    await core.post('/messages', body);
    return itemHash;
  };

  /** A little of everything: types, owners, references, payments, and messages that are not in force. */
  async function sendSome(n: number): Promise<void> {
    const signer = n % 3 === 0 ? bob : alice;
    const at = { time: T0 + n * 10, channel: n % 2 === 0 ? 'even' : 'odd' };
    const tags = n % 4 === 0 ? ['fourth', 'any'] : ['any'];
    const post = await send(
      {
        ...{ type: 'POST', ...at },
        content: {
          ...{ type: n % 5 === 0 ? 'fifth' : 'note', content: { n, tags } },
          ...(n % 3 === 1 ? { ref: 'subject' } : {}),
        },
      },
      signer,
    );
    await send(
      { type: 'AGGREGATE', ...at, content: { key: n % 2 === 0 ? 'profile' : 'settings', content: { n } } },
      signer,
    );
    const file = n % 6 === 5 ? 'f0'.repeat(32) : files[n % 2]!;
    const payment = n % 4 === 3 ? {} : { payment: { chain: 'ETH', type: n % 4 === 0 ? 'hold' : 'credit' } };
    await send(
      {
        ...{ type: 'STORE', ...at },
        content: {
          ...{ item_type: 'storage', item_hash: file, ref: n % 3 === 0 ? 'subject' : 'name' },
          ...payment,
        },
      },
      signer,
    );
    if (n % 8 === 0) await send({ type: 'FORGET', ...at, content: { hashes: [post] } }, signer);
    // On behalf of somebody who permitted nothing.
    if (n % 8 === 1)
      await send({
        ...{ type: 'POST', ...at },
        content: { ...{ address: bob.address, type: 'note', content: { n } } },
      });
  }

  async function confirmSome(): Promise<void> {
    const { kysely } = { kysely: core.rooms.db };
    const rows = await kysely
      .selectFrom('messages')
      .select(['item_hash', 'sender', 'time'])
      .orderBy('item_hash')
      .execute();
    const blocks = [100, 200, 300];
    const place = { network: 'ethereum', log_index: 0, tx_hash: '0x1' };
    await kysely
      .insertInto('anchor_events')
      .values(
        blocks.map((block) => ({
          ...{ ...place, block_number: block, block_time: T0 + block, emitter: '0x2', content: '' },
          ...{ state: 'processed' as const, reason: 'null', due_ms: 0, seen_ms: 0, cid: null },
        })),
      )
      .execute();
    await kysely
      .insertInto('confirmations')
      .values(
        rows
          .filter((_, index) => index % 3 !== 0)
          .map(({ item_hash, sender }, index) => ({
            ...{ ...place, item_hash, sender, chain: 'ETH', block_number: blocks[index % 3]! },
          })),
      )
      .execute();
  }

  const list = async (query: string) => {
    const { status, body } = await core.get(`/messages.json?${query}`);
    assert.equal(status, 200, `${query}: ${JSON.stringify(body)}`);
    return body;
  };

  async function listAll(): Promise<Listed[]> {
    const { hashes } = (await core.get('/messages/hashes?pagination=0&hash_only=False')).body;
    const statusOf = new Map<string, string>(
      hashes.map((one: { item_hash: string; status: string }) => [one.item_hash, one.status]),
    );
    const kept = await list('pagination=0&msgStatuses=processed,pending,rejected');
    const ended = await list('pagination=0&msgStatuses=forgotten');
    const listed = [...kept.messages, ...ended.messages] as Listed[];
    assert.equal(listed.length, statusOf.size);
    return listed.map((one) => ({ ...one, status: statusOf.get(one.item_hash)! }));
  }

  const hasOneOf = (values: readonly string[], own: readonly string[] = []) =>
    own.some((one) => values.includes(one));
  const blockOf = (one: Listed) => one.confirmations[0]?.height ?? Number.NaN;

  /** Every parameter, with what it means said of the deployed form alone. */
  const asked = (): Readonly<Record<string, Asked>> => ({
    addresses: {
      value: alice.address.toUpperCase().replace('0X', '0x'),
      fits: (one) => one.sender === alice.address,
    },
    owners: { value: bob.address, fits: (one) => one.content?.address === bob.address },
    msgTypes: { value: 'POST,STORE', fits: (one) => ['POST', 'STORE'].includes(one.type) },
    channels: { value: 'even', fits: (one) => one.channel === 'even' },
    chains: { value: 'ETH,SOL', fits: (one) => one.chain === 'ETH' },
    contentTypes: { value: 'fifth', fits: (one) => one.content?.type === 'fifth' },
    refs: { value: 'subject,other', fits: (one) => one.content?.ref === 'subject' },
    contentHashes: { value: files[1]!, fits: (one) => one.content?.item_hash === files[1] },
    contentKeys: { value: 'profile', fits: (one) => one.content?.key === 'profile' },
    paymentTypes: { value: 'hold,superfluid', fits: (one) => one.content?.payment?.type === 'hold' },
    tags: { value: 'fourth,none', fits: (one) => hasOneOf(['fourth'], one.content?.content?.tags) },
    hashes: {
      value: all
        .filter((_, index) => index % 4 === 0)
        .map((one) => one.item_hash)
        .join(),
      fits: (one) => all.findIndex(({ item_hash }) => item_hash === one.item_hash) % 4 === 0,
    },
    msgStatuses: {
      value: 'pending,rejected,removing',
      fits: ({ status }) => status === 'pending' || status === 'rejected',
    },
    startBlock: { value: '200', fits: (one) => blockOf(one) >= 200 },
    endBlock: { value: '300', fits: (one) => blockOf(one) < 300 },
    startDate: { value: String(T0 + 55), fits: (one) => one.time >= T0 + 55 },
    endDate: { value: String(T0 + 150), fits: (one) => one.time < T0 + 150 },
  });

  const newestFirst = (a: Listed, b: Listed) => b.time - a.time || (a.item_hash < b.item_hash ? -1 : 1);

  async function check(
    names: readonly string[],
    parameters: Readonly<Record<string, Asked>>,
  ): Promise<number> {
    const expected = all
      .filter((one) => names.includes('msgStatuses') || one.status === 'processed')
      .filter((one) => names.every((name) => parameters[name]!.fits(one)))
      .sort(newestFirst)
      .map(({ item_hash }) => item_hash);
    const query = names.map((name) => `${name}=${encodeURIComponent(parameters[name]!.value)}`).join('&');
    const whole = await list(`${query}&pagination=0`);
    const hashesOf = (body: { messages: Listed[] }) => body.messages.map((one) => one.item_hash);
    assert.deepEqual(hashesOf(whole), expected, query);
    assert.equal(whole.pagination_total, expected.length, query);
    const page = (await core.get(`/messages/page/2.json?${query}&pagination=3&sortOrder=1`)).body;
    const oldestFirst = (await list(`${query}&pagination=0&sortOrder=1`)).messages as Listed[];
    assert.deepEqual(
      hashesOf(page),
      oldestFirst.slice(3, 6).map(({ item_hash }) => item_hash),
      query,
    );
    return expected.length;
  }

  test('every filter, alone and with each other, gives what a plain scan gives', async (t) => {
    const parameters = asked();
    const names = Object.keys(parameters);
    const known = Object.values(MESSAGE_FILTERS).flatMap((one) => namesIn(one, '/messages.json')[0] ?? []);
    assert.deepEqual([...names].sort(), [...known].sort(), 'there is a sample of each');
    let found = 0;
    for (const [index, one] of names.entries()) {
      assert.ok((await check([one], parameters)) > 0, `${one} finds something`);
      for (const other of names.slice(index + 1)) found += Math.min(1, await check([one, other], parameters));
    }
    t.diagnostic(`${(names.length * (names.length - 1)) / 2} pairs, ${found} find something`);
  });

  test('what ended is listed by itself, without its content, by the time of its end', async () => {
    const { messages } = await list('msgStatuses=forgotten,removed&pagination=0');
    assert.deepEqual([messages.length, messages[0].content, messages[0].item_content], [3, null, null]);
    for (const { item_hash, size } of messages) {
      const { source_text: signed } = await core.rooms.db
        .selectFrom('messages')
        .select('source_text')
        .where('item_hash', '=', item_hash)
        .executeTakeFirstOrThrow();
      assert.equal(size, signed === null ? null : Buffer.byteLength(signed), 'of what was signed');
      assert.equal((await core.get(`/messages/${item_hash}`)).body.message.size, size);
    }
    const now = Date.now() / 1000;
    assert.equal((await list(`msgStatuses=forgotten&startDate=${now - 3600}`)).messages.length, 3);
    assert.equal((await list(`msgStatuses=forgotten&endDate=${now - 3600}`)).messages.length, 0);
    assert.equal((await list('msgStatuses=removed')).messages.length, 0);
    assert.equal((await core.get('/messages.json?msgStatuses=forgotten,processed')).status, 422);
  });

  test('in order of the first confirmation, by pages and by cursors', async () => {
    const at = (one: Listed) => one.confirmations[0]?.height ?? Number.POSITIVE_INFINITY;
    const inForce = all.filter(({ status }) => status === 'processed');
    const expected = inForce
      .sort((a, b) => (at(a) === at(b) ? newestFirst(a, b) : at(b) - at(a)))
      .map(({ item_hash }) => item_hash);
    const found: string[] = [];
    for (let cursor = ''; ; ) {
      const body = await list(`sortBy=tx-time&pagination=7&cursor=${cursor}`);
      found.push(...body.messages.map((one: Listed) => one.item_hash));
      if (body.next_cursor === null) break;
      cursor = body.next_cursor;
    }
    assert.deepEqual(found, expected);
    const second = await list('sortBy=tx-time&pagination=7&page=2');
    assert.deepEqual(
      second.messages.map((one: Listed) => one.item_hash),
      expected.slice(7, 14),
    );
  });

  test('contents are shown whole, in outline, or not at all', async () => {
    const one = async (query: string) => (await list(`${query}&pagination=1&sortOrder=1`)).messages[0];
    const outlines = await Promise.all(
      ['POST', 'AGGREGATE', 'STORE', 'FORGET'].map((type) => one(`msgTypes=${type}&contentFormat=headers`)),
    );
    assert.deepEqual(
      outlines.map(({ content }) => Object.keys(content)),
      [['address', 'type', 'ref'], ['address', 'key'], ['address', 'item_hash', 'ref'], ['address']],
    );
    for (const query of ['contentFormat=none', 'excludeContent=True', 'excludeContent=true'])
      assert.equal('content' in (await one(query)), false, query);
    assert.ok('content' in (await one('excludeContent=False')));
  });

  test('bodies=shared: each row can be proven by whoever reads the list', async () => {
    for (const list of ['/messages.json?contentFormat=none&pagination=100', '/messages?limit=100']) {
      const rows = (await core.get(`${list}&bodies=shared`)).body.messages;
      assert.ok(rows.length > 20, list);
      for (const { item_hash: hash, sender, shared } of rows) {
        const proven = verifyShared(shared, Number.MAX_SAFE_INTEGER);
        assert.equal(proven.itemHash, hash);
        assert.equal((proven.signedSender ?? proven.sender).toLowerCase(), sender.toLowerCase());
      }
      const plain = (await core.get(list)).body.messages;
      assert.deepEqual(
        plain,
        rows.map(({ shared: _, ...row }: { shared: string }) => row),
      );
    }
    const tooMany = await core.get('/messages.json?pagination=101&bodies=shared');
    assert.equal(tooMany.body.code, 'INVALID_PARAMETERS');
  });

  test('posts in both of their forms, by pages', async () => {
    const v0 = (await core.get('/posts.json?types=fifth&pagination=0&sortOrder=1')).body;
    const v1 = (
      await core.api.inject({ url: '/api/v1/posts.json?types=fifth&pagination=0&sortOrder=1' })
    ).json();
    assert.ok(v0.posts.length > 2);
    assert.deepEqual(
      v1.posts,
      v0.posts.map((post: Record<string, unknown>) => ({
        ...{ item_hash: post.item_hash, content: post.content, original_item_hash: post.original_item_hash },
        ...{ original_type: post.original_type, address: post.address, ref: post.ref, channel: post.channel },
        created: new Date((post.time as number) * 1000).toISOString(),
        last_updated: new Date((post.time as number) * 1000).toISOString(),
      })),
    );
    for (const path of ['/api/v0', '/api/v1']) {
      const page = await core.api.inject({
        url: `${path}/posts/page/2.json?types=fifth&pagination=1&sortOrder=1`,
      });
      assert.equal(page.json().posts[0].item_hash, v0.posts[1].item_hash);
      const confirmed = await core.api.inject({
        url: `${path}/posts.json?sortBy=tx-time&pagination=2&cursor=`,
      });
      assert.equal(confirmed.json().posts.length, 2);
    }
  });

  test('a request that is wrong is 422, and nothing that is not known is dropped', async () => {
    for (const [query, code] of [
      ['msgStatuses=lost', 'INVALID_PARAMETERS'],
      ['paymentTypes=cash', 'INVALID_PARAMETERS'],
      ['contentHashes=abc', 'INVALID_HASH'],
      ['startBlock=5&endBlock=4', 'INVALID_PARAMETERS'],
      ['pagination=0&cursor=', 'INVALID_PARAMETERS'],
      ['pagination=10001', 'INVALID_PARAMETERS'],
      ['sortBy=size', 'INVALID_PARAMETERS'],
      ['minBalance=1', 'UNKNOWN_FIELD'],
    ] as const) {
      const { status, body } = await core.get(`/messages.json?${query}`);
      assert.deepEqual([status, body.code], [422, code], query);
    }
    assert.equal((await core.get('/messages.json?endDate=0&endBlock=0&startDate=5')).status, 200);
  });
});
