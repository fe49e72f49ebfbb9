import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { buildNetworkMessage, signMessage } from '@skerry/client';
import { ERRORS, isAuthorized, isErrorCode, parseAuthorizations } from '@skerry/protocol';
import { CORE_API } from '@skerry/protocol/api/core/index';
import type { Api } from '@skerry/protocol/api/operation';
import { anyCharacter } from '@skerry/protocol/testing/characters';
import fc from 'fast-check';
import { MESSAGE_TYPES, PRIVATE_TYPES } from '../intake/kinds.ts';
import { parseJsonPath } from '../state/lists/json-path.ts';
import { parseListFilter } from '../state/lists/parameters.ts';
import { SHAPE_PATHS_MAX, shapeOf } from '../state/lists/shape.ts';
import { createTestCore, signers, type TestCore, type TestResponse } from '../testing/core.ts';
import { placeCursor } from './cursor.ts';

const LISTS = ['/messages', '/messages.json', '/posts.json', '/aggregates', '/instances'];
const sizeOf = (list: string) => (list.endsWith('.json') ? 'pagination' : 'limit');
const { alice } = signers;

/** In our form, and no fault of the node. */
function assertRefused({ status, body }: TestResponse, what: string): void {
  assert.ok(status >= 400 && status < 500, `${what}: ${status} ${JSON.stringify(body)}`);
  assert.ok(isErrorCode(body.code), what);
  assert.equal(body.status, 'error');
}

describe('bad input', () => {
  let core: TestCore;
  before(async () => {
    core = await createTestCore();
  });
  after(() => core[Symbol.asyncDispose]());

  const assertInSeconds = async (path: string) => {
    const answer = await core.get(path);
    assertRefused(answer, path);
    assert.equal(answer.body.code, 'INVALID_PARAMETERS', path);
    assert.match(
      answer.body.error,
      /must be an? (?:integer|number) from 0 to \d+ \(Unix seconds, not milliseconds\)$/,
      path,
    );
  };

  test('pages and sizes out of range, in every list', async () => {
    for (const list of LISTS) {
      for (const value of ['0', '-1', 'x', '1.5', '', '1e9', '99999999999999999999', 'NaN', '1,2'])
        for (const name of ['page', sizeOf(list)]) {
          // Deployed nodes answer everything then; here it is the largest page.
          if (name === 'pagination' && value === '0') continue;
          assertRefused(await core.get(`${list}?${name}=${value}`), `${list} ${name}=${value}`);
        }
      const tooMany = list.endsWith('.json') ? 10_001 : 101;
      assertRefused(await core.get(`${list}?${sizeOf(list)}=${tooMany}`), list);
      assertRefused(await core.get(`${list}?page=1&page=2`), `${list} twice`);
    }
  });

  test('filters: unknown values, empty ones, 10,000 of them, NUL, a path that is broken', async () => {
    const hashes = Array.from({ length: 10_000 }, (_, n) => n.toString(16).padStart(64, '0')).join();
    for (const query of [
      `hashes=${hashes}`,
      'types=NONE',
      'types=post',
      'addresses=,',
      'channels=a%00b',
      'tags=%00',
      'content.keys=%00',
      ...[
        '',
        '.',
        '$',
        '$.',
        'a.',
        'a..b',
        'a[',
        'a[0]',
        'a[*',
        "a['b",
        'a["b]',
        'a["\\x"]',
        'a b',
        '[*]x',
      ].map((path) => `content.keys=${encodeURIComponent(path)}`),
      `content.keys=${encodeURIComponent('["\\u0000"]')}`,
      `content.keys=${encodeURIComponent('["\\ud800"]')}`,
      `content.keys=${'a.'.repeat(20)}a`,
      `content.keys=${'a'.repeat(300)}`,
      'cursor=x&page=2',
    ])
      assertRefused(await core.get(`/messages?${query}`), query.slice(0, 80));
    for (const path of ['["\\u0000"]', '["\\udc00"]', '..'])
      assertRefused(await core.get(`/aggregates?content.fields=${encodeURIComponent(path)}`), path);
    for (const path of [
      '/messages/%00',
      `/instances/${'f'.repeat(63)}g`,
      '/aggregates/%00/a',
      '/storage/%E0%A4',
    ])
      assertRefused(await core.get(path), path);
    for (const query of [
      'addresses=__proto__',
      'channels=constructor',
      'tags=%ED%A0%80',
      'addresses=0X',
      'channels=%',
    ])
      assert.equal((await core.get(`/messages?${query}`)).status, 200, query);
  });

  test('a date that can only be in milliseconds, in every list: it was an empty list, without a word', async () => {
    const ms = 1_790_000_000_000;
    const id = 'ab'.repeat(32);
    for (const path of [
      ...['/messages.json', '/messages/page/1.json', '/messages/hashes', '/posts.json', '/posts/page/1.json'],
      `/addresses/${alice.address}/credit_history`,
    ])
      for (const name of ['startDate', 'endDate']) await assertInSeconds(`${path}?${name}=${ms}`);
    for (const kind of ['core', 'compute'])
      for (const name of ['start_date', 'end_date'])
        await assertInSeconds(`/${kind}/${id}/metrics?${name}=${ms}`);
    for (const path of [`/addresses/${alice.address}/balance`, '/credits/charges?kind=instance'])
      await assertInSeconds(`${path}${path.includes('?') ? '&' : '?'}time=${ms}`);
    assert.equal((await core.get('/messages.json?endDate=99999999999')).status, 200);
  });

  test('every date that anything of a node is asked for by has a last second', () => {
    const dates = Object.entries(CORE_API as Api).flatMap(([id, { query }]) =>
      Object.entries((query?.properties ?? {}) as Record<string, { description?: string; maximum?: number }>)
        .filter(([, { description }]) => /Unix seconds/.test(description ?? ''))
        .map(([name, { maximum }]) => ({ id, name, maximum })),
    );
    assert.ok(dates.length > 20, `${dates.length}`);
    assert.deepEqual(
      dates.filter(({ maximum }) => !(typeof maximum === 'number' && maximum < 100_000_000_000)),
      [],
    );
  });

  test('a request line or a head of any length ends in an answer', async () => {
    const url = await core.api.listen({ host: '127.0.0.1', port: 0 });
    const hashes = Array.from({ length: 10_000 }, () => 'a'.repeat(64)).join();
    const long = await fetch(`${url}/api/v0/messages?hashes=${hashes}`);
    assert.deepEqual(
      [long.status, ((await long.json()) as { code: string }).code],
      [431, 'HEADERS_TOO_LARGE'],
    );
  });

  test('JSON: depth, repeated and dangerous keys, NUL, lone surrogates, numbers', async () => {
    const whole = (inner: string) => {
      const text = `{"chain":"ETH","channel":"bad","type":"POST","timestamp":1700000000,"content":{"type":"n","content":${inner}}}`;
      return `{"message":${text},"signature":"${alice.sign(text)}","address":"${alice.address}"}`;
    };
    for (const inner of [
      '['.repeat(62) + ']'.repeat(62),
      '['.repeat(100_000),
      `${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`,
      '{"__proto__":1}',
      '{"a":{"__proto__":{"x":1}}}',
      '{"a":1,"a":2}',
      '{"a":1,"\\u0061":2}',
      '"\\u0000"',
      '"\\ud800"',
      '"\\udfff\\ud800"',
      '{"\\udc00":1}',
      '1e400',
      '-1e999',
      '01',
      'NaN',
      '1.',
    ])
      assertRefused(await core.post('/messages', whole(inner)), inner.slice(0, 40));
    for (const inner of [
      '['.repeat(60) + ']'.repeat(60),
      '"\\ud83d\\ude00"',
      '{"constructor":{"prototype":1}}',
    ])
      assert.equal((await core.post('/messages', whole(inner))).status, 200, inner.slice(0, 40));
    // A number of more than 53 bits: the signed text has its digits, a parsed content what JavaScript keeps of them.
    const { body } = await core.post('/messages', whole('[12345678901234567890, 0.1, 1e308, -0]'));
    const { body: view } = await core.get(`/messages/${body.item_hash}`);
    assert.ok(view.signed_text.includes('[12345678901234567890, 0.1, 1e308, -0]'));
    assert.deepEqual(view.content.content.slice(0, 3), [Number('12345678901234567890'), 0.1, 1e308]);
  });

  test('the same inside a content of the network form', async () => {
    const send = (itemContent: string) => {
      const { message } = JSON.parse(
        buildNetworkMessage({ type: 'POST', content: { type: 'n' } }, alice).body,
      );
      return core.post('/messages', JSON.stringify({ message: { ...message, item_content: itemContent } }));
    };
    for (const text of [
      '',
      '[]',
      '{',
      '{"a":1,"a":2}',
      '{"__proto__":1}',
      '"\\u0000"',
      '\ud800',
      '['.repeat(100_000),
    ])
      assertRefused(await send(text), text.slice(0, 40));
  });

  test('any body is answered, and never by a fault of the node', async () => {
    const json = fc.json({ maxDepth: 5 });
    const { body: envelope } = signMessage({ type: 'POST', content: { type: 'n' } }, alice);
    const { body: network } = buildNetworkMessage({ type: 'POST', content: { type: 'n' } }, alice);
    const cut = fc
      .tuple(
        fc.constantFrom(envelope, network),
        fc.nat(1_000),
        fc.string({ unit: anyCharacter, maxLength: 5 }),
        fc.nat(5),
      )
      .map(([text, at, put, drop]) => text.slice(0, at) + put + text.slice(at + drop));
    const fields = fc.record(
      {
        ...{ chain: fc.constantFrom('ETH', 'SOL', 'x', ''), sender: fc.string(), signature: fc.string() },
        ...{ type: fc.constantFrom('POST', 'STORE', 'FORGET', 'x'), channel: json, time: fc.double() },
        ...{
          item_hash: fc.constantFrom('a'.repeat(64), 'x', ''),
          item_content: json,
          item_type: fc.string(),
        },
        ...{ timestamp: fc.anything(), content: fc.anything(), nonce: fc.string() },
      },
      { requiredKeys: [] },
    );
    const shaped = fc.tuple(fields, fc.string(), fc.string()).map(([message, signature, address]) => {
      try {
        return JSON.stringify({ message, signature, address });
      } catch {
        return '{}';
      }
    });
    const bytes = fc.uint8Array({ maxLength: 200 }).map((array) => Buffer.from(array));
    const paths = fc.constantFrom(
      '/messages',
      '/aggregates',
      '/programs',
      '/webhooks',
      '/instances',
      `/run/${'0'.repeat(64)}`,
    );
    await fc.assert(
      fc.asyncProperty(fc.oneof(json, cut, shaped, bytes), paths, async (body, path) => {
        const { status } = await core.post(path, body);
        assert.ok(status < 500, `${status} to ${String(body).slice(0, 300)}`);
      }),
      { numRuns: 600 },
    );
  });

  test('signed contents of every type, whatever is in them, never fail the node', async () => {
    const text = fc.string({ unit: 'grapheme', maxLength: 400 }).filter((one) => !one.includes('\0'));
    const value = fc.oneof(
      text,
      fc.integer(),
      fc.constantFrom(null, 'amend', 'a'.repeat(64)),
      fc.jsonValue({ maxDepth: 3 }),
    );
    const known = [
      'type',
      'ref',
      'key',
      'content',
      'item_type',
      'item_hash',
      'hashes',
      'tags',
      'address',
      'name',
      'instance_id',
      'action',
      'hash',
    ];
    const content = fc.oneof(
      fc.dictionary(fc.oneof(fc.constantFrom(...known), text), value, { maxKeys: 6 }),
      fc.record(
        { type: text, content: value, ref: text, tags: fc.array(text, { maxLength: 3 }) },
        { requiredKeys: ['type'] },
      ),
      fc.record({ key: text, content: fc.dictionary(text, value, { maxKeys: 4 }) }),
    );
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...MESSAGE_TYPES, ...PRIVATE_TYPES),
        content,
        fc.boolean(),
        async (type, made, isNetwork) => {
          const { body } = isNetwork
            ? buildNetworkMessage({ type, content: made as Record<string, unknown> }, alice)
            : signMessage({ type, content: made }, alice);
          const { status, body: answer } = await core.post('/messages', body);
          assert.ok(status < 500, `${status} ${JSON.stringify(answer)} to ${body.slice(0, 400)}`);
        },
      ),
      { numRuns: 600 },
    );
    await core.rooms.pipeline.idle();
    assert.equal((await core.get('/messages?limit=100')).status, 200);
    assert.equal((await core.get('/posts.json?pagination=500')).status, 200);
    assert.equal((await core.get('/aggregates?limit=100')).status, 200);
  });

  test('any query is answered', async () => {
    const names = [
      'page',
      'limit',
      'cursor',
      'hashes',
      'addresses',
      'tags',
      'types',
      'content.keys',
      'x',
      'startDate',
      'key',
    ];
    const query = fc.array(
      fc.tuple(fc.constantFrom(...names), fc.string({ unit: anyCharacter, maxLength: 20 })),
      {
        maxLength: 3,
      },
    );
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...LISTS), query, async (list, pairs) => {
        const text = pairs
          .map(([name, value]) => `${name}=${encodeURIComponent(value.toWellFormed())}`)
          .join('&');
        assert.ok((await core.get(`${list}?${text}`)).status < 500, text);
      }),
      { numRuns: 400 },
    );
  });
});

/** Runs a reader on a stranger's text; only our own errors may come out. */
function reads(read: () => unknown): unknown {
  try {
    return read();
  } catch (error) {
    const { code } = error as { code?: string };
    assert.ok(code !== undefined && code in ERRORS, String(error));
    return undefined;
  }
}

describe('readers of strangers’ texts', () => {
  const text = fc.oneof(fc.string({ unit: anyCharacter }), fc.stringMatching(/^[$.\w[\]*'"\\ ]*$/));

  test('paths: read or refused; what a content has is found by the path that the shape writes', () => {
    fc.assert(fc.property(text, (one) => void reads(() => parseJsonPath(one, 'x'))));
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (content) => {
        for (const path of shapeOf(content)) {
          const isPlain = path.isWellFormed() && !path.includes('\\u0000') && !/\\ud[89a-f]/i.test(path);
          if (isPlain) assert.equal(parseJsonPath(path, 'x').join(''), path);
        }
      }),
    );
    for (const [given, steps] of [
      ['a.b', ['.a', '.b']],
      ['$.a.b', ['.a', '.b']],
      ['$["a"].b[*].c', ['.a', '.b', '[*]', '.c']],
      ["['two words']", ['["two words"]']],
      ['["\\u0061"]', ['.a']],
    ] as [string, string[]][])
      assert.deepEqual(parseJsonPath(given, 'x'), steps);
  });

  test('shapes: bounded, the same for the same members in any order', (t) => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.anything(), { maxKeys: 80 }), (content) => {
        const shape = shapeOf(content);
        assert.ok(shape.length <= SHAPE_PATHS_MAX);
        if (Object.keys(content).length < 8)
          assert.deepEqual(
            shapeOf(Object.fromEntries(Object.entries(content).reverse())).length,
            shape.length,
          );
      }),
    );
    const wide = Object.fromEntries(Array.from({ length: 1_000 }, (_, n) => [`k${n}`, { deep: n }]));
    assert.equal(shapeOf(wide).length, SHAPE_PATHS_MAX);
    const writing = t.mock.method(JSON, 'stringify');
    shapeOf(Object.fromEntries(Array.from({ length: 1_000 }, (_, n) => [`k ${n}`, n])));
    assert.equal(writing.mock.callCount(), SHAPE_PATHS_MAX + 1, 'of other paths none is made');
    assert.ok(shapeOf({ first: { inner: 1 }, list: [{ id: 1 }, { other: 2 }] }).includes('.list[*].other'));
    // Each of them is an object to look into, and a content may have a million.
    const long = [...Array.from({ length: 20_000 }, () => ({ id: 1 })), { other: 2 }];
    assert.deepEqual(shapeOf({ long }), ['.long', '.long[*]', '.long[*].id']);
  });

  test('filters, cursors and authorizations: read or refused', () => {
    fc.assert(
      fc.property(text, (one) => {
        reads(() => parseListFilter('x', one));
        reads(() => placeCursor.read(one));
      }),
    );
    const place = fc.record({
      t: fc.double({ noNaN: true, noDefaultInfinity: true }),
      h: fc.stringMatching(/^[0-9a-f]{64}$/),
    });
    fc.assert(
      fc.property(place, ({ t, h }) => {
        const { t: time, h: hash } = placeCursor.read(placeCursor.write({ t, h }))!;
        assert.ok(time === t && hash === h);
      }),
    );
    for (const value of [{ t: 1, h: '\0' }, { t: '1', h: 'a' }, { t: 1 }, { t: 1, h: 'a', x: 1 }, null, []])
      assert.throws(() => placeCursor.read(Buffer.from(JSON.stringify(value)).toString('base64url')), {
        code: 'INVALID_CURSOR',
      });
    const act = {
      sender: 'a',
      chain: 'ETH',
      channel: null,
      type: 'POST',
      contentType: 'x',
      aggregateKey: null,
    };
    const entry = fc.record(
      {
        address: fc.constantFrom('a', 'b', 1),
        types: fc.anything(),
        channels: fc.anything(),
        chain: fc.anything(),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(fc.oneof(fc.anything(), fc.array(fc.oneof(entry, fc.anything()))), (value) => {
        assert.equal(typeof isAuthorized(parseAuthorizations(value), act), 'boolean');
      }),
    );
  });
});
