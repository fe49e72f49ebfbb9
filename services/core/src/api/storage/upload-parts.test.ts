import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { listen } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { createTestCore, signers, type TestCore } from '../../testing/core.ts';

const LIMIT = 1024 * 1024;
const OCTETS = 'application/octet-stream';
const hashOf = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

describe('a file in parts, over a socket', () => {
  let core: TestCore;
  let url: string;
  before(async () => {
    core = await createTestCore({ uploadLimitBytes: LIMIT });
    url = await listen(core.api, '127.0.0.1', 0);
  });
  after(() => core[Symbol.asyncDispose]());

  const { alice, bob } = signers;
  const placeOf = (whole: Uint8Array, offset: number, more: Record<string, string> = {}) => {
    const hash = hashOf(whole);
    const query = {
      address: alice.address,
      signature: alice.sign(hash),
      size: whole.length,
      offset,
      ...more,
    };
    const text = Object.entries(query).map(([name, value]): [string, string] => [name, String(value)]);
    return `/api/v0/storage/uploads/${hash}?${new URLSearchParams(text)}`;
  };
  const put = async (place: string, body: Uint8Array, type = OCTETS) => {
    const answer = await fetch(url + place, {
      method: 'PUT',
      headers: { 'content-type': type },
      body: body as BodyInit,
    });
    return (await answer.json()) as Record<string, unknown>;
  };
  const progress = async (whole: Uint8Array) => {
    const query = `address=${alice.address}&size=${whole.length}`;
    const answer = await fetch(`${url}/api/v0/storage/uploads/${hashOf(whole)}?${query}`);
    return ((await answer.json()) as { received: number }).received;
  };

  test('what arrived before the connection broke is not sent again, and the whole is kept for its uploader', async () => {
    const whole = randomBytes(500_000);
    const hash = hashOf(whole);
    const { hostname, port } = new URL(url);
    const socket = connect(Number(port), hostname);
    await once(socket, 'connect');
    socket.write(
      `PUT ${placeOf(whole, 0)} HTTP/1.1\r\nHost: x\r\nContent-Type: ${OCTETS}\r\nContent-Length: ${whole.length}\r\n\r\n`,
    );
    socket.write(whole.subarray(0, 200_000));
    await until(
      'the first bytes are there',
      () => progress(whole),
      (received) => received === 200_000,
    );
    socket.destroy();
    assert.equal((await fetch(`${url}/api/v0/storage/${hash}`)).status, 404);
    const rest = () => put(placeOf(whole, 200_000, { content_type: 'image/png' }), whole.subarray(200_000));
    // The node notices the end of the other in its own time.
    const done = await until('the rest is taken', rest, ({ code }) => code !== 'OVERLOADED');
    const { item_hash: itemHash, ...told } = done;
    assert.deepEqual(told, { file_hash: hash, size: whole.length, received: whole.length });
    const kept = await fetch(`${url}/api/v0/storage/raw/${hash}`);
    assert.equal(hashOf(new Uint8Array(await kept.arrayBuffer())), hash);
    const { body: message } = await core.get(`/messages/${itemHash}`);
    assert.deepEqual(
      [message.type, message.sender, message.signed_text, message.content.content_type],
      ['STORE', alice.address, hash, 'image/png'],
    );
    assert.equal(await progress(whole), 0);
    // Sent once more, as a whole: the same message.
    assert.equal((await put(placeOf(whole, 0), whole)).item_hash, itemHash);
  });

  test('a part that begins elsewhere is not taken, and told where to go on', async () => {
    const whole = randomBytes(1_000);
    assert.equal((await put(placeOf(whole, 0), whole.subarray(0, 300))).received, 300);
    const told = await put(placeOf(whole, 700), whole.subarray(700));
    assert.deepEqual([told.received, told.item_hash], [300, null]);
    assert.equal((await put(placeOf(whole, 300), whole.subarray(300))).received, 1_000);
  });

  test('what is not what was signed is refused and begins anew; strangers and too much are refused before a byte', async () => {
    const whole = randomBytes(1_000);
    assert.equal((await put(placeOf(whole, 0), randomBytes(1_000))).code, 'HASH_MISMATCH');
    assert.equal(await progress(whole), 0);
    const hash = hashOf(whole);
    const refused: [Record<string, string>, string][] = [
      [{ signature: bob.sign(hash) }, 'INVALID_SIGNATURE'],
      [{ address: '0x1' }, 'INVALID_ADDRESS'],
      [{ size: String(LIMIT + 1) }, 'FILE_TOO_LARGE'],
      [{ size: '0' }, 'INVALID_PARAMETERS'],
      [{ offset: '-1' }, 'INVALID_PARAMETERS'],
      [{ colour: 'red' }, 'UNKNOWN_FIELD'],
    ];
    for (const [more, code] of refused) assert.equal((await put(placeOf(whole, 0, more), whole)).code, code);
    assert.equal((await put(placeOf(whole, 0), whole, 'text/plain')).code, 'UNSUPPORTED_MEDIA_TYPE');
    assert.equal(await progress(whole), 0);
  });
});
