import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { after, before, describe, test } from 'node:test';
import { buildNetworkMessage, type NetworkDraft, type Signer } from '@skerry/client';
import { sha256Hex } from '@skerry/protocol';
import { createTestCore, instanceContent, SSH_KEY, signers, type TestCore } from '../../testing/core.ts';

const T0 = 1_700_000_000;
const { alice, bob } = signers;
const HASH = 'ab'.repeat(32);

/** What deployed nodes' clients allow in an object of a list; they refuse any other field. */
const MESSAGE_FIELDS = [
  ...['chain', 'channel', 'confirmations', 'confirmed', 'content', 'item_content', 'item_hash'],
  ...['item_type', 'sender', 'signature', 'size', 'time', 'type'],
];
const POST_FIELDS = [
  ...[
    'address',
    'chain',
    'channel',
    'confirmations',
    'confirmed',
    'content',
    'hash',
    'item_content',
    'item_hash',
  ],
  ...['item_type', 'original_item_hash', 'original_signature', 'original_type', 'ref', 'sender', 'signature'],
  ...['size', 'time', 'type'],
];

const machine = {
  allow_amend: false,
  metadata: { name: 'of the network' },
  authorized_keys: [SSH_KEY],
  variables: {},
  resources: { vcpus: 2, memory: 1024, seconds: 30 },
  environment: { internet: true, aleph_api: true },
  volumes: [],
};
const instance = {
  ...machine,
  rootfs: { parent: { ref: HASH, use_latest: true }, persistence: 'host', size_mib: 4096 },
};
const program = {
  ...machine,
  type: 'vm-function',
  code: { encoding: 'zip', entrypoint: 'main:app', ref: HASH, use_latest: true },
  runtime: { ref: HASH, use_latest: true, comment: '' },
  on: { http: true },
};

describe('messages in the network form', () => {
  let core: TestCore;
  before(async () => {
    core = await createTestCore();
  });
  after(() => core[Symbol.asyncDispose]());

  const send = async (draft: NetworkDraft, signer: Signer = alice) => {
    const { body, itemHash } = buildNetworkMessage(draft, signer);
    return { ...(await core.post('/messages', body)), itemHash };
  };
  const keep = async (text: string): Promise<string> => {
    const blob = await core.rooms.files.receive(Readable.from([Buffer.from(text)]));
    await blob.keep();
    return blob.hash;
  };
  const post = (text: string, more: object = {}) => ({
    type: 'POST',
    content: { type: 'note', content: { text, tags: ['net'] }, ...more },
  });

  test('every type is taken, answered with both sets of fields, and read in both forms', async () => {
    const cases: [string, NetworkDraft, number][] = [
      ['POST', { ...post('hello'), channel: null, time: T0 + 0.25 }, 200],
      ['AGGREGATE', { type: 'AGGREGATE', content: { key: { name: 'net' }, content: { a: null } } }, 200],
      ['STORE', { type: 'STORE', content: { item_type: 'storage', item_hash: HASH, mime_type: 'x/y' } }, 202],
      ['INSTANCE', { type: 'INSTANCE', content: instance }, 200],
      ['PROGRAM', { type: 'PROGRAM', content: program }, 202],
      ['FORGET', { type: 'FORGET', content: { hashes: [], aggregates: [HASH] } }, 202],
    ];
    for (const [type, draft, expected] of cases) {
      const { status, body, itemHash } = await send(draft);
      const { reason, ...answer } = body;
      const isProcessed = expected === 200;
      assert.deepEqual(
        [status, answer],
        [
          expected,
          {
            item_hash: itemHash,
            status: isProcessed ? 'success' : 'pending',
            publication_status: { status: 'success', failed: [] },
            message_status: isProcessed ? 'processed' : 'pending',
          },
        ],
        type,
      );
      assert.equal(reason === undefined, isProcessed);
      const view = (await core.get(`/messages/${itemHash}`)).body;
      const own = isProcessed ? view.message : view.messages[0];
      const time = isProcessed ? own.time : Date.parse(own.time) / 1000;
      assert.deepEqual(
        [view.status, view.type, view.timestamp, own.type, own.sender, own.item_type],
        [answer.message_status, type, Math.floor(time), type, alice.address, 'inline'],
      );
      assert.equal(sha256Hex(own.item_content), itemHash);
      assert.equal(view.signed_text, `ETH\n${alice.address}\n${type}\n${itemHash}`);
      const again = await send({ ...draft, time, content: JSON.parse(own.item_content) });
      assert.deepEqual([again.status, again.itemHash], [expected, itemHash], 'sent again it is the same');
    }
    const { body } = await core.get(`/aggregates/${alice.address}.json?keys=net`);
    assert.deepEqual(body.data, { net: { a: null } });
    const { instances } = (await core.get(`/instances?address=${alice.address}`)).body;
    assert.deepEqual(
      [instances[0].name, instances[0].cpu, instances[0].memory, instances[0].disk, instances[0].image],
      ['of the network', 2, 1024, 4, HASH],
    );
  });

  test('a refused message answers 422 with what deployed clients look for; the envelope form keeps its own codes', async () => {
    const { body } = buildNetworkMessage(post('x'), alice);
    const changed = (change: object) =>
      JSON.stringify({ message: { ...JSON.parse(body).message, ...change } });
    const refusals: [string, string][] = [
      [changed({ signature: `0x${'11'.repeat(65)}` }), 'INVALID_SIGNATURE'],
      [changed({ signature: null }), 'SIGNATURE_REQUIRED'],
      [changed({ item_hash: HASH }), 'HASH_MISMATCH'],
      [changed({ item_hash: 'x' }), 'INVALID_HASH'],
      [changed({ time: 'x' }), 'INVALID_ENVELOPE'],
      [changed({ chain: 'NONE' }), 'UNKNOWN_CHAIN'],
      [changed({ time: Date.now() / 1000 + 3600 }), 'TIMESTAMP_IN_FUTURE'],
      [buildNetworkMessage({ type: 'NONE', content: {} }, alice).body, 'UNKNOWN_MESSAGE_TYPE'],
      [buildNetworkMessage({ type: 'POST', content: { type: 7 } }, alice).body, 'INVALID_CONTENT'],
      [buildNetworkMessage(post('x', { colour: 1 }), alice).body, 'UNKNOWN_FIELD'],
      [buildNetworkMessage(post('x', { address: bob.address }), alice).body, 'NOT_PERMITTED'],
      [
        buildNetworkMessage({ type: 'INSTANCE', content: { ...instance, authorized_keys: ['x'] } }, alice)
          .body,
        'INVALID_SSH_KEY',
      ],
    ];
    for (const [text, code] of refusals) {
      const answer = await core.post('/messages', text);
      assert.deepEqual([answer.status, answer.body.code], [422, code], answer.body.error);
      assert.deepEqual(
        [answer.body.status, answer.body.message_status, answer.body.publication_status],
        ['error', 'rejected', { status: 'error', failed: [] }],
      );
    }
    assert.deepEqual((await core.post('/messages', '{"message":{"item_hash":')).status, 400);
    const envelope = await core.send(alice, post('x', { address: bob.address }));
    assert.deepEqual([envelope.status, envelope.body.publication_status], [403, undefined]);
    const rejected = buildNetworkMessage(post('rejected', { address: bob.address }), alice);
    await core.post('/messages', rejected.body);
    const { body: view } = await core.get(`/messages/${rejected.itemHash}`);
    assert.deepEqual(
      [view.status, view.error_code, view.message.item_hash],
      ['rejected', 2, rejected.itemHash],
    );
  });

  test('a content that is a file: before the message or after it', async () => {
    const contentOf = (n: number) =>
      JSON.stringify({ address: alice.address, time: T0 + n, type: 'file', content: { n } });
    const messageOf = (hash: string, signer = alice) =>
      JSON.stringify({
        message: {
          ...{
            chain: 'ETH',
            sender: signer.address,
            type: 'POST',
            time: T0,
            item_type: 'storage',
            item_hash: hash,
          },
          signature: signer.sign(`ETH\n${signer.address}\nPOST\n${hash}`),
        },
      });
    const first = await keep(contentOf(1));
    assert.equal((await core.post('/messages', messageOf(first))).status, 200);
    const { body } = await core.get(`/messages/${first}`);
    assert.deepEqual(
      [body.content.content, body.timestamp, body.message.item_type, body.message.item_content],
      [{ n: 1 }, T0 + 1, 'storage', null],
    );

    const late = sha256Hex(contentOf(2));
    const early = await core.post('/messages', messageOf(late));
    assert.deepEqual([early.status, early.body.reason.code], [202, 'CONTENT_NOT_FOUND']);
    await keep(contentOf(2));
    await core.rooms.pipeline.touch([`file:${late}`]);
    await core.rooms.pipeline.idle();
    assert.equal((await core.get(`/messages/${late}`)).body.status, 'processed');
    assert.equal((await core.get('/posts.json?types=file')).body.pagination_total, 2);

    const bad = await keep('{"type":"file","type":1}');
    assert.deepEqual((await core.post('/messages', messageOf(bad))).body.code, 'INVALID_CONTENT');
    const unknown = sha256Hex('{"nothing":1}');
    await core.post('/messages', messageOf(unknown));
    await keep('{"nothing":1}');
    await core.rooms.pipeline.touch([`file:${unknown}`]);
    await core.rooms.pipeline.idle();
    const { body: refused } = await core.get(`/messages/${unknown}/status`);
    assert.deepEqual([refused.status, refused.reason.code], ['rejected', 'INVALID_CONTENT']);
  });

  test('objects in lists have the fields that strict clients allow, whatever form the message had', async () => {
    await send(post('strict'));
    await core.send(alice, { type: 'POST', content: { type: 'note', content: { text: 'envelope' } } });
    await core.send(alice, { type: 'INSTANCE', content: instanceContent });
    const { messages } = (await core.get('/messages.json?pagination=100')).body;
    assert.ok(messages.length >= 3);
    for (const message of messages) {
      assert.deepEqual(Object.keys(message).sort(), MESSAGE_FIELDS);
      assert.deepEqual([message.confirmed, message.confirmations], [false, []]);
      if (message.item_type === 'inline') assert.deepEqual(JSON.parse(message.item_content), message.content);
      assert.equal(typeof message.content.address, 'string');
      const { body } = await core.get(`/messages/${message.item_hash}`);
      assert.deepEqual(
        Object.keys(body.message).sort(),
        MESSAGE_FIELDS.filter((name) => name !== 'size'),
      );
    }
    const { posts } = (await core.get('/posts.json?pagination=100')).body;
    for (const one of posts) {
      assert.deepEqual(Object.keys(one).sort(), POST_FIELDS);
      assert.equal(typeof one.content, 'object');
    }
  });

  test('a list is read by pages or by cursor, in either order', async () => {
    for (let n = 0; n < 5; n++) await send({ ...post(`n${n}`), channel: 'paged', time: T0 + n });
    const times = (body: { messages: { time: number }[] }) => body.messages.map(({ time }) => time - T0);
    const page = (query: string) => core.get(`/messages.json?channels=paged&pagination=2&${query}`);
    const second = (await page('page=2')).body;
    assert.deepEqual([times(second), second.pagination_total, second.pagination_page], [[2, 1], 5, 2]);
    const all: number[] = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      const { body }: { body: { messages: { time: number }[]; next_cursor: string | null } } = await page(
        `cursor=${cursor}&sortOrder=1`,
      );
      all.push(...times(body));
      cursor = body.next_cursor;
    }
    assert.deepEqual(all, [0, 1, 2, 3, 4]);
    const range = `startDate=${T0 + 1}&endDate=${T0 + 3}`;
    assert.deepEqual(times((await page(range)).body), [2, 1], 'inclusive, exclusive');
    assert.equal((await core.get('/messages.json?tags=net&owners=none')).body.messages.length, 0);
  });

  describe('a stranger’s copy of somebody’s message', () => {
    const copyOf = (body: string, signer: Signer) => {
      const { message } = JSON.parse(body);
      const signature = signer.sign(`ETH\n${signer.address}\n${message.type}\n${message.item_hash}`);
      return JSON.stringify({ message: { ...message, sender: signer.address, signature } });
    };
    const senderOf = async (hash: string) => {
      const { body } = await core.get(`/messages/${hash}`);
      return [body.status, body.sender];
    };

    test('after it changes nothing', async () => {
      const { body, itemHash } = buildNetworkMessage(post('mine'), alice);
      await core.post('/messages', body);
      await core.post('/messages', copyOf(body, bob));
      assert.deepEqual(await senderOf(itemHash), ['processed', alice.address]);
    });

    test('before it does not stand in its way', async () => {
      const { body, itemHash } = buildNetworkMessage(post('mine too'), alice);
      assert.equal((await core.post('/messages', copyOf(body, bob))).status, 422);
      assert.deepEqual(await senderOf(itemHash), ['rejected', bob.address]);
      assert.equal((await core.post('/messages', body)).status, 200);
      assert.deepEqual(await senderOf(itemHash), ['processed', alice.address]);
      assert.equal((await core.get(`/messages?hashes=${itemHash}`)).body.pagination.total, 1);
    });

    test('at the same moment, many times, each is told its own', async () => {
      const pairs = Array.from({ length: 20 }, (_, n) => buildNetworkMessage(post(`race ${n}`), alice));
      const answers = await Promise.all(
        pairs.flatMap(({ body }, n) => {
          const both = [core.post('/messages', body), core.post('/messages', copyOf(body, bob))];
          return n % 2 === 0 ? both : both.reverse();
        }),
      );
      for (const [n, { itemHash }] of pairs.entries()) {
        assert.ok(answers.slice(2 * n, 2 * n + 2).some(({ status }) => status === 200));
        assert.deepEqual(await senderOf(itemHash), ['processed', alice.address]);
      }
    });

    test('of one that lacks something: what is acknowledged is kept', async () => {
      const file = 'ef'.repeat(32);
      const store = { type: 'STORE', content: { item_type: 'storage', item_hash: file } };
      const { body, itemHash } = buildNetworkMessage(store, alice);
      assert.equal((await core.post('/messages', copyOf(body, bob))).status, 422);
      assert.equal((await core.post('/messages', body)).status, 202);
      assert.deepEqual(await senderOf(itemHash), ['pending', alice.address]);
      await core.post('/messages', copyOf(body, bob));
      assert.deepEqual(await senderOf(itemHash), ['pending', alice.address]);
      // Of a content that is not here, nobody can say whose it is.
      const text = JSON.stringify({ address: alice.address, time: T0, type: 'file', content: {} });
      const hash = sha256Hex(text);
      const message = {
        chain: 'ETH',
        sender: alice.address,
        type: 'POST',
        time: T0,
        item_type: 'storage',
        item_hash: hash,
      };
      const mine = JSON.stringify({
        message: { ...message, signature: alice.sign(`ETH\n${alice.address}\nPOST\n${hash}`) },
      });
      assert.equal((await core.post('/messages', copyOf(mine, bob))).status, 202);
      const told = await core.post('/messages', mine);
      assert.deepEqual([told.status, told.body.code], [422, 'CONTENT_NOT_FOUND'], 'not acknowledged');
      await keep(text);
      await core.rooms.pipeline.touch([`file:${hash}`]);
      await core.rooms.pipeline.idle();
      assert.equal((await core.post('/messages', mine)).status, 200);
      assert.deepEqual(await senderOf(hash), ['processed', alice.address]);
    });
  });
});
