import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { AppError } from '../errors.ts';
import { checksumAddress } from '../evm/address.ts';
import { sha256Hex } from '../hash.ts';
import { LIMITS } from '../limits.ts';
import { anyCharacter } from '../testing/characters.ts';
import { isCid, isItemHash64, parseMessageHash } from './item-hash.ts';
import {
  isNetworkForm,
  parseContentFile,
  parseNetworkMessage,
  readContentHead,
  verifyNetworkMessage,
} from './message.ts';
import {
  ADDRESS,
  CID0,
  CID1,
  type Fields,
  fileMessage,
  HASH,
  inlineMessage,
  NOW,
  samples,
  signed,
} from './testing/setup.ts';

const POST = JSON.stringify(samples.POST);
const verify = (value: unknown, now = NOW) => verifyNetworkMessage(parseNetworkMessage(value), now);
const without = (fields: Fields, ...names: string[]) =>
  Object.fromEntries(Object.entries(fields).filter(([name]) => !names.includes(name)));
const fails = (value: unknown, code: string, why: string) =>
  assert.throws(
    () => verify(value),
    (error) => error instanceof AppError && error.code === code,
    `${why}: ${code}`,
  );

describe('messages of the network form', () => {
  test('a good inline message, with its content, its hash and the text that was signed', () => {
    const fields = inlineMessage(POST);
    assert.deepEqual(verify(fields), {
      chain: 'ETH',
      sender: ADDRESS,
      signedSender: ADDRESS,
      type: 'POST',
      channel: 'TEST',
      time: NOW + 0.25,
      itemType: 'inline',
      itemHash: sha256Hex(POST),
      itemContent: POST,
      content: samples.POST,
      signature: fields.signature,
      signedText: `ETH\n${ADDRESS}\nPOST\n${sha256Hex(POST)}`,
    });
  });

  test('the sender is signed as it is spelled, and kept in one spelling', () => {
    const sender = checksumAddress(ADDRESS);
    const verified = verify(inlineMessage(POST, { sender }));
    assert.equal(verified.sender, ADDRESS);
    assert.equal(verified.signedSender, sender);
    fails({ ...inlineMessage(POST, { sender }), sender: ADDRESS }, 'INVALID_SIGNATURE', 'respelled');
  });

  test('null, unknown fields and a content beside the message change nothing', () => {
    const fields = inlineMessage(POST);
    const noisy = { ...fields, content: { evil: 1 }, hash_type: 'sha256', confirmations: [], size: 3 };
    assert.deepEqual(verify(noisy), verify(fields));
    assert.equal(verify(without(fields, 'channel')).channel, null);
    assert.equal(verify({ ...fields, channel: null }).channel, null);
    assert.equal(verify({ ...fileMessage(HASH), item_content: null }).itemContent, null);
  });

  test('item_type follows from what is there', () => {
    assert.equal(verify(without(inlineMessage(POST), 'item_type')).itemType, 'inline');
    assert.equal(verify(without(fileMessage(HASH), 'item_type')).itemType, 'storage');
    for (const cid of [CID0, CID1]) {
      assert.equal(verify(without(fileMessage(cid), 'item_type')).itemType, 'ipfs');
      assert.equal(verify(fileMessage(cid, { item_type: 'ipfs' })).content, null);
    }
  });

  test('what an envelope must have', () => {
    const good = inlineMessage(POST);
    for (const value of [undefined, null, 1, 'x', [], [good], {}]) {
      assert.throws(() => verify(value), AppError);
    }
    for (const name of ['chain', 'sender', 'type', 'time', 'item_hash']) {
      fails(without(good, name), 'INVALID_ENVELOPE', `no ${name}`);
      fails({ ...good, [name]: {} }, 'INVALID_ENVELOPE', `an object as ${name}`);
    }
    for (const signature of [undefined, null, ''])
      fails({ ...good, signature }, 'SIGNATURE_REQUIRED', 'none');
    const bad: Fields[] = [
      { signature: { data: '0x' } },
      { time: '1800000000' },
      { time: -1 },
      { time: 9_223_372_037 },
      { time: Number.NaN },
      { time: Number.POSITIVE_INFINITY },
      { item_type: 'p2p' },
      { item_content: 1 },
      { item_content: null },
      { item_type: 'storage' },
      { type: 'POST\nx' },
      { type: 'post' },
      { sender: `${ADDRESS}\nPOST` },
      { channel: 'x'.repeat(LIMITS.channelChars + 1) },
      { channel: 'a\0' },
    ];
    for (const fields of bad) fails({ ...good, ...fields }, 'INVALID_ENVELOPE', JSON.stringify(fields));
    fails(inlineMessage(POST, { chain: 'NEO' }), 'UNKNOWN_CHAIN', 'a chain without a verifier');
    fails(inlineMessage(POST, { chain: 'toString' }), 'UNKNOWN_CHAIN', 'not a chain');
    fails(inlineMessage(POST, { sender: '0x12' }), 'INVALID_ADDRESS', 'not an address');
  });

  test('hashes', () => {
    for (const bad of ['', 'x', HASH.toUpperCase(), HASH.slice(1), `${HASH}0`, 'Qm1', `${CID1}a`]) {
      fails(inlineMessage(POST, { item_hash: bad }), 'INVALID_HASH', bad);
    }
    fails(inlineMessage(POST, { item_hash: CID0 }), 'INVALID_HASH', 'an inline message by CID');
    fails(fileMessage(CID0), 'INVALID_HASH', 'storage by CID');
    fails(fileMessage(HASH, { item_type: 'ipfs' }), 'INVALID_HASH', 'ipfs by SHA-256');
    fails(inlineMessage(POST, { item_hash: HASH }), 'HASH_MISMATCH', 'the hash of something else');
    fails(
      { ...inlineMessage(POST), item_content: JSON.stringify({ ...samples.POST, type: 'other' }) },
      'HASH_MISMATCH',
      'another content',
    );
  });

  test('inline contents', () => {
    const bad = [
      '',
      'null',
      '[]',
      `${POST},`,
      POST.replace('"x"', 'NaN'),
      POST.replace('"x"', '"\\u0000"'),
      // The six characters are enough, as in deployed nodes, even where JSON reads them as something else.
      POST.replace('"x"', '"\\\\u0000"'),
      POST.replace('"x"', '"\\ud800"'),
      POST.replace('"x"', '"\ud800"'),
      POST.replace('"body"', '"__proto__"'),
      POST.replace('"body"', '"tags"'),
      JSON.stringify(without(samples.POST, 'address')),
      JSON.stringify(without(samples.POST, 'time')),
      JSON.stringify({ ...samples.POST, address: '' }),
      JSON.stringify({ ...samples.POST, address: 'a\n' }),
      JSON.stringify({ ...samples.POST, time: '1' }),
    ];
    for (const text of bad) fails(inlineMessage(text), 'INVALID_CONTENT', text);
  });

  test('the limit of an inline content counts code points', () => {
    const spare = LIMITS.inlineContentChars - JSON.stringify({ ...samples.POST, content: '' }).length;
    const of = (char: string, count: number) =>
      inlineMessage(JSON.stringify({ ...samples.POST, content: char.repeat(count) }));
    for (const char of ['x', '😀']) {
      assert.equal(verify(of(char, spare)).itemType, 'inline');
      fails(of(char, spare + 1), 'INVALID_CONTENT', char);
    }
  });

  test('the clock judges the envelope and the content', () => {
    const limit = NOW + LIMITS.futureSeconds;
    const at = (time: number, contentTime: number) =>
      inlineMessage(JSON.stringify({ ...samples.POST, time: contentTime }), { time });
    assert.equal(verify(at(limit, limit)).time, limit);
    assert.equal(verify(at(0, 0)).time, 0);
    fails(at(limit + 0.5, NOW), 'TIMESTAMP_IN_FUTURE', 'the envelope');
    fails(at(NOW, limit + 0.5), 'TIMESTAMP_IN_FUTURE', 'the content');
  });

  test('what is signed cannot change; what is not, changes neither hash nor owner nor order', () => {
    const good = inlineMessage(POST);
    for (const [name, value] of [
      ['chain', 'ARB'],
      ['type', 'STORE'],
      ['sender', HASH.slice(0, 40).padStart(42, '0x')],
    ] as const) {
      fails({ ...good, [name]: value }, 'INVALID_SIGNATURE', name);
    }
    const moved = verify({ ...good, time: 5, channel: 'elsewhere' });
    assert.equal(moved.itemHash, sha256Hex(POST));
    assert.deepEqual(readContentHead(moved.content!), { address: ADDRESS, time: NOW });
  });

  test('the two forms are told apart by item_hash alone', () => {
    assert.equal(isNetworkForm(inlineMessage(POST)), true);
    assert.equal(isNetworkForm({ chain: 'ETH', type: 'POST', timestamp: NOW, content: {} }), false);
    for (const value of [undefined, null, 1, 'item_hash', [], Object.create({ item_hash: 1 })]) {
      assert.equal(isNetworkForm(value), false);
    }
  });
});

describe('content files', () => {
  const bytesOf = (text: string) => new TextEncoder().encode(text);
  const read = (text: string, others: Fields = {}) =>
    parseContentFile(bytesOf(text), verify(fileMessage(sha256Hex(text), others)), NOW);

  test('a content that is a file; address and time come from the message where it leaves them out', () => {
    assert.deepEqual(read(POST), samples.POST);
    assert.deepEqual(read('{"type":"x"}'), { address: ADDRESS, time: NOW + 0.25, type: 'x' });
    const byCid = parseNetworkMessage(fileMessage(CID0, { item_type: 'ipfs' }));
    assert.deepEqual(parseContentFile(bytesOf(POST), byCid, NOW), samples.POST);
  });

  test('what a content file may not be', () => {
    const message = parseNetworkMessage(fileMessage(sha256Hex(POST)));
    assert.throws(() => parseContentFile(bytesOf(`${POST} `), message, NOW), { code: 'HASH_MISMATCH' });
    for (const text of [
      '',
      '[]',
      '{',
      '\ufeff{}',
      '{"a":1,"a":2}',
      '{"a":"\\u0000"}',
      '{"address":null}',
      '{"time":"x"}',
    ]) {
      assert.throws(() => read(text), { code: 'INVALID_CONTENT' }, text);
    }
    assert.throws(() => read(JSON.stringify({ time: NOW + 601 })), { code: 'TIMESTAMP_IN_FUTURE' });
    const byCid = { ...message, itemType: 'ipfs', itemHash: CID0 } as const;
    for (const bytes of [
      Uint8Array.of(0x7b, 0xff, 0x7d),
      new Uint8Array(LIMITS.contentFileBytes + 1).fill(0x20),
    ]) {
      assert.throws(() => parseContentFile(bytes, byCid, NOW), { code: 'INVALID_CONTENT' });
    }
    const inline = parseNetworkMessage(inlineMessage(POST));
    assert.throws(() => parseContentFile(bytesOf(POST), inline, NOW), { code: 'INVALID_CONTENT' });
  });
});

describe('item hashes', () => {
  test('their forms', () => {
    assert.deepEqual(parseMessageHash(HASH), { hash: HASH, itemType: 'storage' });
    for (const cid of [CID0, CID0.slice(0, 44), CID1]) {
      assert.deepEqual(parseMessageHash(cid), { hash: cid, itemType: 'ipfs' });
      assert.equal(isCid(cid), true);
      assert.equal(isItemHash64(cid), false);
    }
    const bad = [
      CID0.slice(0, 43),
      `${CID0}a`,
      CID0.replace('a', '0'),
      CID0.replace('a', 'l'),
      CID1.replace('aa', 'A1'),
      `${HASH}\n`,
    ];
    for (const text of bad) assert.throws(() => parseMessageHash(text), { code: 'INVALID_HASH' }, text);
  });

  test('any text is one form or INVALID_HASH', () => {
    fc.assert(
      fc.property(fc.string({ unit: anyCharacter }), (text) => {
        assert.equal(isCid(text) && isItemHash64(text), false);
        if (!isCid(text) && !isItemHash64(text)) {
          assert.throws(() => parseMessageHash(text), { code: 'INVALID_HASH' });
        }
      }),
    );
  });
});

describe('what strangers send', () => {
  const good = inlineMessage(POST);

  test('any value at all gives a message or an AppError', () => {
    const value = fc.oneof(
      fc.anything({ withNullPrototype: true, withBigInt: true, withDate: true, withMap: true }),
      fc.record(
        Object.fromEntries(
          Object.entries(good).map(([name, original]) => [
            name,
            fc.oneof(fc.constant(original), fc.anything()),
          ]),
        ),
        { requiredKeys: [] },
      ),
    );
    fc.assert(
      fc.property(value, (fields) => {
        try {
          verify(fields);
        } catch (error) {
          assert.ok(error instanceof AppError, String(error));
        }
      }),
      { numRuns: 2000 },
    );
  });

  test('a content file of any bytes gives a content or an AppError', () => {
    const message = parseNetworkMessage(fileMessage(CID0, { item_type: 'ipfs' }));
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 300 }),
      fc.json().map((text) => new TextEncoder().encode(text)),
      fc.tuple(fc.nat(POST.length - 1), fc.nat(255)).map(([at, byte]) => {
        const changed = new TextEncoder().encode(POST);
        changed[at] = byte;
        return changed;
      }),
    );
    fc.assert(
      fc.property(bytes, (file) => {
        try {
          assert.ok(readContentHead(parseContentFile(file, message, NOW)).time >= 0);
        } catch (error) {
          assert.ok(error instanceof AppError, String(error));
        }
      }),
      { numRuns: 2000 },
    );
  });

  test('no byte of a body can change what a message says: hash, sender, type, content', () => {
    const body = new TextEncoder().encode(JSON.stringify(signed(good)));
    const { itemHash, sender, type, content } = verify(good);
    fc.assert(
      fc.property(fc.nat(body.length - 1), fc.nat(255), (at, byte) => {
        const changed = body.slice();
        changed[at] = byte;
        let value: unknown;
        try {
          value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(changed));
        } catch {
          return;
        }
        try {
          const read = verify(value);
          assert.deepEqual(
            [read.itemHash, read.sender, read.type, read.content],
            [itemHash, sender, type, content],
          );
        } catch (error) {
          assert.ok(error instanceof AppError, String(error));
        }
      }),
      { numRuns: 1500 },
    );
  });
});
