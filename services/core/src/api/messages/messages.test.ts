import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { signMessage, verifyListed } from '@skerry/client';
import { ANY_TIME, LIMITS, verifyShared } from '@skerry/protocol';
import { createTestCore, instanceContent, signers, type TestCore } from '../../testing/core.ts';

const post = (text: string) => ({ type: 'POST', content: { type: 'note', content: { text } } });
const nowSeconds = () => Math.floor(Date.now() / 1000);

describe('messages', () => {
  let core: TestCore;
  before(async () => {
    core = await createTestCore();
  });
  after(() => core[Symbol.asyncDispose]());

  test('an envelope in a list with bodies=shared is proven without another question', async () => {
    const draft = { type: 'POST', content: { type: 'note', content: 'in a list' } };
    const { item_hash: hash } = (await core.send(signers.alice, draft)).body;
    const listed = (await core.get(`/messages.json?hashes=${hash}&bodies=shared`)).body.messages[0];
    // Nothing listens there.
    const nowhere = { coreUrl: 'http://127.0.0.1:9' };
    const { itemHash, sender } = await verifyListed(nowhere, listed);
    assert.deepEqual([itemHash, sender], [hash, signers.alice.address]);
    const other = (await core.send(signers.bob, draft)).body.item_hash;
    await assert.rejects(verifyListed(nowhere, { ...listed, item_hash: other }), { code: 'HASH_MISMATCH' });
    const { shared: _, ...bare } = listed;
    await assert.rejects(verifyListed(nowhere, bare), { code: 'UPSTREAM_UNAVAILABLE' });
  });

  test('a message that is too long for lists is told by itself, with since when it is there, also for as long as it is only taken back', async () => {
    const date = nowSeconds() - 3_600;
    const long = { ...post('x'.repeat(LIMITS.listedBodyBytes)), timestamp: date };
    const { item_hash: hash } = (await core.send(signers.alice, long)).body;
    const tell = async () => (await core.get(`/messages/${hash}?bodies=shared`)).body.shared;
    const listed = (await core.get(`/messages.json?hashes=${hash}&bodies=shared`)).body.messages[0];
    assert.equal(listed.shared, null);
    const { itemHash, time, notedMs } = verifyShared(await tell(), ANY_TIME);
    assert.deepEqual([itemHash, time], [hash, date]);
    assert.ok(notedMs! > (date + LIMITS.lateSeconds) * 1000);
    assert.equal((await core.get(`/messages/${hash}`)).body.shared, undefined);
    await core.send(signers.alice, { type: 'FORGET', content: { hashes: [hash] } });
    assert.equal(verifyShared(await tell(), ANY_TIME).notedMs, notedMs);
  });

  test('a signed message is kept, can be read by its hash and re-verified, and is applied once', async () => {
    const { body, itemHash } = signMessage(post('hello'), signers.alice);
    for (let i = 0; i < 2; i++) {
      const sent = await core.post('/messages', body);
      assert.deepEqual([sent.status, sent.body], [200, { item_hash: itemHash, status: 'success' }]);
    }
    const { status, body: message } = await core.get(`/messages/${itemHash}`);
    assert.equal(status, 200);
    assert.equal(message.sender, signers.alice.address);
    assert.deepEqual(message.content, { type: 'note', content: { text: 'hello' } });
    assert.deepEqual(message.confirmations, []);
    assert.equal(JSON.stringify(JSON.parse(body).message), message.signed_text);
    const events = await core.get('/events?limit=100');
    assert.equal(
      events.body.events.filter((event: { data: { item_hash: string } }) => event.data.item_hash === itemHash)
        .length,
      1,
    );
  });

  test('a crowd that reads at once is answered each its own message, as one that reads alone is', async () => {
    const texts = Array.from({ length: 20 }, (_, n) => `of the crowd ${n}`);
    const sent = await Promise.all(texts.map((text) => core.send(signers.alice, post(text))));
    const hashes = sent.map(({ body }) => body.item_hash as string);
    const unknown = 'f'.repeat(64);
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => [...hashes, unknown])
        .flat()
        .map(async (hash) => ({ hash, ...(await core.get(`/messages/${hash}`)) })),
    );
    for (const { hash, status, body } of answers) {
      if (hash === unknown) assert.deepEqual([status, body.code], [404, 'MESSAGE_NOT_FOUND']);
      else
        assert.deepEqual(
          [status, body.item_hash, body.content.content.text],
          [200, hash, texts[hashes.indexOf(hash)]],
        );
    }
  });

  test('the signature may cover the bytes as sent, or their compact form; nothing else', async () => {
    const message = {
      chain: 'ETH',
      channel: 'c',
      type: 'POST',
      timestamp: nowSeconds(),
      content: { type: 't' },
    };
    const pretty = JSON.stringify(message, null, 2);
    const { address } = signers.alice;
    const overBytes = `{"message":${pretty},"signature":"${signers.alice.sign(pretty)}","address":"${address.toUpperCase().replace('0X', '0x')}"}`;
    const overCompact = `{"address":"${address}","signature":"${signers.alice.sign(JSON.stringify(message))}","message":${pretty}}`;
    const sorted = JSON.stringify(message, Object.keys(message).sort());
    const overSorted = `{"message":${pretty},"signature":"${signers.alice.sign(sorted)}","address":"${address}"}`;
    assert.equal((await core.post('/messages', overBytes)).status, 200);
    assert.equal((await core.post('/messages', overCompact)).status, 200);
    const refused = await core.post('/messages', overSorted);
    assert.deepEqual([refused.status, refused.body.code], [401, 'INVALID_SIGNATURE']);
  });

  test('lists filter by address, type, channel and hash, newest first, with exact totals', async () => {
    const hashes: string[] = [];
    for (let i = 0; i < 5; i++) {
      const draft = { ...post(`n${i}`), channel: 'list-test', timestamp: 1_700_000_000 + i };
      hashes.push((await core.send(signers.bob, draft)).body.item_hash);
    }
    const { body } = await core.get(
      `/messages?channels=list-test,none&limit=2&page=2&types=POST&addresses=${signers.bob.address.toUpperCase().replace('0X', '0x')}`,
    );
    assert.deepEqual(body.pagination, { total: 5, page: 2, per_page: 2, total_pages: 3 });
    assert.deepEqual(
      body.messages.map((message: { item_hash: string }) => message.item_hash),
      [hashes[2], hashes[1]],
    );
    const byHash = await core.get(`/messages?hashes=${hashes[0]},${hashes[4]}`);
    assert.equal(byHash.body.pagination.total, 2);
    assert.equal((await core.get('/messages?channels=list-test&types=STORE')).body.pagination.total, 0);
  });

  test('pages and filters out of range are refused', async () => {
    for (const query of [
      'page=0',
      'page=-1',
      'page=x',
      'page=1.5',
      'page=',
      'limit=0',
      'limit=101',
      'limit=text',
      'page=9999999999',
      'hashes=abc',
      'types=',
      'types=POST,,STORE',
      'colour=red',
      `channels=${Array(LIMITS.filterValues + 1).fill('a')}`,
    ]) {
      const { status, body } = await core.get(`/messages?${query}`);
      assert.equal(status, 400, query);
      assert.ok(
        ['INVALID_PARAMETERS', 'UNKNOWN_FIELD', 'INVALID_HASH'].includes(body.code),
        `${query}: ${body.code}`,
      );
      assert.equal(body.status, 'error');
    }
  });

  test('what is not an acceptable message is refused with its code, and nothing of it is stored', async () => {
    const { address } = signers.alice;
    const signed = (message: unknown) => {
      const text = JSON.stringify(message);
      return JSON.stringify({ message, signature: signers.alice.sign(text), address });
    };
    const good = {
      chain: 'ETH',
      channel: 'bad-test',
      type: 'POST',
      timestamp: nowSeconds(),
      content: { type: 't' },
    };
    const envelope = JSON.parse(signed(good));
    const cases: [string, string, number][] = [
      ['', 'INVALID_JSON', 400],
      ['{', 'INVALID_JSON', 400],
      ['[]', 'INVALID_JSON', 400],
      [signed({ ...good, content: { type: 'a\u0000b' } }), 'INVALID_JSON', 400],
      [JSON.stringify({ message: good, address }), 'SIGNATURE_REQUIRED', 401],
      [JSON.stringify({ message: good, signature: '', address }), 'SIGNATURE_REQUIRED', 401],
      [JSON.stringify({ ...envelope, extra: 1 }), 'UNKNOWN_FIELD', 400],
      [signed({ ...good, sender: address }), 'UNKNOWN_FIELD', 400],
      [signed({ ...good, content: { type: 't', colour: 'red' } }), 'UNKNOWN_FIELD', 400],
      [JSON.stringify({ ...envelope, message: null }), 'INVALID_ENVELOPE', 400],
      [signed({ ...good, timestamp: '12' }), 'INVALID_ENVELOPE', 400],
      [signed({ ...good, timestamp: 1.5 }), 'INVALID_ENVELOPE', 400],
      [signed({ ...good, timestamp: -1 }), 'INVALID_ENVELOPE', 400],
      [signed({ ...good, channel: undefined }), 'INVALID_ENVELOPE', 400],
      [signed({ ...good, channel: 'x'.repeat(LIMITS.channelChars + 1) }), 'INVALID_ENVELOPE', 400],
      [signed({ ...good, content: [] }), 'INVALID_ENVELOPE', 400],
      [signed({ ...good, content: {} }), 'INVALID_CONTENT', 400],
      [signed({ ...good, content: { type: 7 } }), 'INVALID_CONTENT', 400],
      [signed({ ...good, type: 'NONSENSE' }), 'UNKNOWN_MESSAGE_TYPE', 400],
      [signed({ ...good, type: 'toString' }), 'UNKNOWN_MESSAGE_TYPE', 400],
      [signed({ ...good, chain: 'XYZ' }), 'UNKNOWN_CHAIN', 400],
      [signed({ ...good, chain: '__proto__' }), 'UNKNOWN_CHAIN', 400],
      [signed({ ...good, timestamp: nowSeconds() + 3600 }), 'TIMESTAMP_IN_FUTURE', 400],
      [JSON.stringify({ ...envelope, address: '0x123' }), 'INVALID_ADDRESS', 400],
      [JSON.stringify({ ...envelope, address: signers.bob.address }), 'INVALID_SIGNATURE', 401],
      [JSON.stringify({ ...envelope, message: { ...good, channel: 'forged' } }), 'INVALID_SIGNATURE', 401],
      [JSON.stringify({ ...envelope, signature: '0x00' }), 'INVALID_SIGNATURE', 401],
      [
        signed({ ...good, type: 'POST', content: { type: 'net-allocation', content: {} } }),
        'INVALID_CONTENT',
        400,
      ],
    ];
    for (const [body, code, status] of cases) {
      const response = await core.post('/messages', body);
      assert.deepEqual([response.body.code, response.status], [code, status], body.slice(0, 300));
      assert.equal(response.body.status, 'error');
      assert.ok(response.body.error.length > 5);
    }
    assert.equal((await core.get('/messages?channels=bad-test,forged')).body.pagination.total, 0);
  });

  test('a body over a megabyte, of another type, or not UTF-8 is refused', async () => {
    const big = await core.post('/messages', `{"a":"${'x'.repeat(LIMITS.jsonBodyBytes)}"}`);
    assert.deepEqual([big.status, big.body.code], [413, 'BODY_TOO_LARGE']);
    const xml = await core.post('/messages', '<a/>', { 'content-type': 'application/xml' });
    assert.deepEqual([xml.status, xml.body.code], [415, 'UNSUPPORTED_MEDIA_TYPE']);
    const latin = await core.post('/messages', Buffer.from([0x7b, 0x22, 0xe9, 0x22, 0x3a, 0x31, 0x7d]));
    assert.deepEqual([latin.status, latin.body.code], [400, 'INVALID_JSON']);
  });

  test('many messages at once share commits, each gets its own answer, a refused one harms no other', async () => {
    const stranger = { type: 'INSTANCE_CONTROL', content: { instance_id: '9'.repeat(64), action: 'stop' } };
    const answers = await Promise.all(
      Array.from({ length: 60 }, (_, i) =>
        core.send(signers.alice, i % 3 === 0 ? stranger : { ...post(`m${i}`), channel: 'many' }),
      ),
    );
    assert.deepEqual(
      answers.map((answer) => answer.status),
      Array.from({ length: 60 }, (_, i) => (i % 3 === 0 ? 202 : 200)),
    );
    assert.equal((await core.get('/messages?channels=many')).body.pagination.total, 40);
  });

  test('unknown hashes, malformed hashes and unknown paths answer in our form', async () => {
    assert.equal((await core.get(`/messages/${'0'.repeat(64)}`)).body.code, 'MESSAGE_NOT_FOUND');
    assert.equal((await core.get('/messages/xyz')).body.code, 'INVALID_HASH');
    const missing = await core.get('/nothing');
    assert.deepEqual([missing.status, missing.body.code], [404, 'ROUTE_NOT_FOUND']);
  });

  test('an instance message may also come through the general door', async () => {
    const { status, body } = await core.send(signers.alice, { type: 'INSTANCE', content: instanceContent });
    assert.equal(status, 200);
    assert.equal((await core.get(`/instances/${body.item_hash}`)).body.name, 'web');
  });
});
