import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createTestCore, instanceContent, signers, type TestCore } from '../../testing/core.ts';

describe('a client written from the specification alone', () => {
  let core: TestCore;
  before(async () => {
    core = await createTestCore();
  });
  after(() => core[Symbol.asyncDispose]());

  const json = { 'content-type': 'application/json' };
  const note = (channel: string, n = 0) =>
    core.send(signers.alice, { type: 'POST', channel, content: { type: 'note', content: n } });

  test('S6: the answer of /vrf/generate is verified as it is, and what it says is checked', async () => {
    const drawn = await core.post(
      '/vrf/generate',
      JSON.stringify({ seed: 'a', min: 1, max: 6, count: 3 }),
      json,
    );
    assert.equal(drawn.status, 200);
    const verify = async (claim: object) =>
      (await core.post('/vrf/verify', JSON.stringify(claim), json)).body;
    assert.equal((await verify(drawn.body)).valid, true);
    for (const lie of [{ min: 0 }, { max: 7 }, { count: 2 }, { public_key: '00' }]) {
      const { valid, reason } = await verify({ ...drawn.body, ...lie });
      assert.deepEqual([valid, reason.code], [false, 'VRF_VALUE_MISMATCH'], JSON.stringify(lie));
    }
  });

  test('S7: what a content lacks has another code than what it has too much, and both say what is allowed', async () => {
    const send = async (content: Record<string, unknown>) =>
      (await core.send(signers.alice, { type: 'POST', channel: 'a', content })).body;
    const lacking = await send({ text: 'hello' });
    assert.equal(lacking.code, 'INVALID_CONTENT');
    assert.match(lacking.error, /content lacks "type"/);
    const tooMuch = await send({ type: 'note', text: 'hello' });
    assert.equal(tooMuch.code, 'UNKNOWN_FIELD');
    assert.match(tooMuch.error, /content has no field "text"; fields: type, content, ref, tags, address/);
  });

  test('S9: /messages.json takes limit, within the bounds of every list', async () => {
    for (let n = 0; n < 3; n++) await note('limits', n);
    const page = await core.get('/messages.json?channels=limits&limit=2');
    assert.deepEqual([page.body.messages.length, page.body.pagination_per_page], [2, 2]);
    const next = await core.get(`/messages.json?channels=limits&limit=2&cursor=${page.body.next_cursor}`);
    assert.equal(next.body.messages.length, 1);
    assert.equal((await core.get('/messages.json?limit=101')).status, 422);
  });

  test('S10: PUT /messages is 405', async () => {
    const { statusCode, headers } = await core.api.inject({ method: 'PUT', url: '/api/v0/messages' });
    assert.deepEqual([statusCode, headers.allow], [405, 'GET, HEAD, POST']);
  });

  test('S11: a state or an action that does not exist is answered with those that do', async () => {
    assert.match((await core.get('/instances?status=foo')).body.error, /must be one of running, stopped/);
    const made = await core.send(signers.alice, { type: 'INSTANCE', content: instanceContent }, '/instances');
    const id = made.body.instance_id;
    const refused = await core.send(
      signers.alice,
      { type: 'INSTANCE_CONTROL', content: { instance_id: id, action: 'destroy' } },
      `/instances/${id}/control`,
    );
    assert.match(refused.body.error, /content.action must be one of start, stop, restart/);
  });

  test('what cannot be read is answered with what can', async () => {
    const form = { 'content-type': 'multipart/form-data; boundary=b' };
    const nameless = '--b\r\ncontent-disposition: form-data\r\n\r\nx\r\n--b--\r\n';
    for (const [answer, expected] of [
      [core.get('/indexer/none/events?args={'), /query\.args must be JSON: an object of argument names/],
      [
        core.get('/credit_balances?min_balance=1&minBalance=2'),
        /query\.min_balance and query\.minBalance mean the same; send one of them/,
      ],
      [core.post('/storage/add_json', '{'), /the body must be one JSON value/],
      [core.post('/storage/store', nameless, form), /has no name; fields: file, address, signature/],
    ] as const) {
      assert.match((await answer).body.error, expected);
    }
  });

  test('S12: messages of type WEBHOOK are private: the list is empty', async () => {
    const { status, body } = await core.get('/messages?types=WEBHOOK');
    assert.deepEqual([status, body.messages, body.pagination.total], [200, [], 0]);
    assert.match((await core.get('/messages?types=FOO')).body.error, /known: POST, .*WEBHOOK/);
  });

  test('S16: arguments of events are taken one by one as well as in JSON', async () => {
    const texts = [
      'args=%7B%22to%22%3A%220x1%22%7D',
      'args%5Bto%5D=0x1',
      'args.to=0x1',
      'args[to]=0x1&args[id]=5',
    ];
    for (const text of texts)
      assert.equal((await core.get(`/indexer/none/events?${text}`)).body.code, 'NETWORK_NOT_FOUND', text);
    for (const text of ['args.to=1&args[to]=2', 'args.to=1&args.to=2', 'args=%7B%7D&args.to=1', 'other.to=1'])
      assert.equal((await core.get(`/indexer/none/events?${text}`)).status, 400, text);
  });

  test('L1: a channel holds no control characters, whichever door it comes through', async () => {
    for (const channel of ['a\nb', 'a\u0000b', 'a\u007f', 'a\u0085b']) {
      const { status, body } = await note(channel);
      assert.equal(status, 400, JSON.stringify(channel));
      if (channel !== 'a\u0000b') assert.deepEqual([body.code], ['INVALID_ENVELOPE']);
    }
    assert.equal((await note('ein Kanal für ☕')).status, 200);
  });

  test('L1: a forger of offers is banned with its whole /64, and behind a trusted proxy for itself alone', () => {
    const { clientOf } = core.rooms;
    const keyOf = (remoteAddress: string) => clientOf({ socket: { remoteAddress }, headers: {} }).key;
    assert.equal(keyOf('2001:db8::1'), keyOf('2001:db8::2'));
    assert.notEqual(keyOf('2001:db8::1'), keyOf('2001:db8:0:1::1'));
  });
});
