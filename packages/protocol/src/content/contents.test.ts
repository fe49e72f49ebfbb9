import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { AppError } from '../errors.ts';
import { LIMITS } from '../limits.ts';
import { ADDRESS, CID0, CID1, HASH, SSH_KEY } from '../network-form/testing/setup.ts';
import { parseAggregateContent } from './aggregate.ts';
import { parseForgetContent } from './forget.ts';
import { parseInstanceContent } from './instance.ts';
import { parseIpfsPinContent } from './ipfs-pin.ts';
import { normaliseAddress, ownerOf } from './on-behalf.ts';
import { parsePostContent } from './post.ts';
import { parseProgramContent, parseRuntime, programOf } from './program.ts';
import { parseStoreContent } from './store.ts';
import { parseWebhookContent } from './webhook.ts';

interface Subject {
  readonly parse: (value: unknown) => unknown;
  readonly sample: Readonly<Record<string, unknown>>;
  readonly accepted: readonly Readonly<Record<string, unknown>>[];
  readonly refused: readonly Readonly<Record<string, unknown>>[];
}

const hashes = (count: number) => Array.from({ length: count }, (_, i) => i.toString(16).padStart(64, '0'));

const SUBJECTS: Readonly<Record<string, Subject>> = {
  POST: {
    parse: parsePostContent,
    sample: { type: 'note' },
    accepted: [{ content: null }, { ref: 'x', tags: ['a'] }, { type: 'amend', ref: HASH }],
    refused: [
      { type: '' },
      { type: 'amend' },
      { type: 'amend', ref: '' },
      { tags: [''] },
      { tags: 'a' },
      { ref: null },
    ],
  },
  AGGREGATE: {
    parse: parseAggregateContent,
    sample: { key: 'profile', content: {} },
    accepted: [{ key: '__proto__' }, { key: 'k'.repeat(LIMITS.aggregateKeyChars) }, { content: { a: null } }],
    refused: [
      ...[
        { key: '' },
        { key: 'a\0' },
        { key: { name: 'k' } },
        { key: 'k'.repeat(LIMITS.aggregateKeyChars + 1) },
      ],
      ...[{ content: [] }, { content: null }, { content: 'x' }, { content: JSON.parse('{"__proto__":{}}') }],
    ],
  },
  STORE: {
    parse: parseStoreContent,
    sample: { item_type: 'storage', item_hash: HASH },
    accepted: [
      { item_type: 'ipfs', item_hash: CID0 },
      { ref: 'mine', size: 0 },
    ],
    refused: [{ item_type: 'ipfs' }, { item_hash: CID0 }, { item_hash: 'x' }, { size: 1.5 }, { ref: '' }],
  },
  FORGET: {
    parse: parseForgetContent,
    sample: { hashes: [HASH] },
    accepted: [{ hashes: [CID0, CID1, HASH] }, { reason: '' }, { hashes: hashes(LIMITS.forgetHashes) }],
    refused: [
      ...[
        { hashes: [] },
        { hashes: [HASH, HASH] },
        { hashes: ['x'] },
        { hashes: HASH },
        { hashes: [HASH.toUpperCase()] },
      ],
      ...[{ hashes: hashes(LIMITS.forgetHashes + 1) }, { reason: 'x'.repeat(LIMITS.forgetReasonChars + 1) }],
    ],
  },
  PROGRAM: {
    parse: parseProgramContent,
    sample: { name: 'p', code: 'x', runtime: 'nodejs', memory: 128, timeout: 10 },
    accepted: [{ description: 'd' }, { code: HASH }, { runtime: 'python3.12' }, { code: 'é\n\t' }],
    refused: [
      ...[{ name: '' }, { name: 'a\n' }, { code: '' }, { code: 1 }, { runtime: 'perl' }, { runtime: 1 }],
      ...[{ memory: 15 }, { memory: 128.5 }, { memory: '128' }, { timeout: 0 }, { timeout: 3601 }],
      { code: 'x'.repeat(LIMITS.programCodeChars + 1) },
    ],
  },
  INSTANCE: {
    parse: parseInstanceContent,
    sample: { name: 'i', cpu: 1, memory: 128, disk: 1, image: 'debian:12', ssh_key: SSH_KEY },
    accepted: [{ image: HASH }, { image: CID0 }, { image: CID1 }],
    refused: [{ image: 'Qm1' }, { image: '../x' }, { image: `${CID0}/x` }, { cpu: 0 }],
  },
  IPFS_PIN: {
    parse: parseIpfsPinContent,
    sample: { hash: CID0 },
    accepted: [{ hash: CID1 }, { hash: `bafk${'a'.repeat(55)}` }],
    refused: [{ hash: HASH }, { hash: '' }, { hash: `/ipfs/${CID0}` }, { hash: [CID0] }],
  },
  WEBHOOK: {
    parse: parseWebhookContent,
    sample: { url: 'https://example.org/hook?a=1', events: ['message.new'], secret: 's' },
    accepted: [
      { url: 'http://[2001:db8::1]:8080' },
      { events: ['program.executed', 'instance.status', 'message.confirmed', 'message.new'] },
    ],
    refused: [
      ...[
        '',
        'example.org',
        'ftp://a',
        'javascript:alert(1)',
        'http://',
        'http:a',
        'https://u:p@a/',
        'http://a:99999',
      ].map((url) => ({ url })),
      { url: `https://a/${'x'.repeat(LIMITS.urlChars)}` },
      ...[
        { events: [] },
        { events: ['message.old'] },
        { events: ['message.new', 'message.new'] },
        { events: 'message.new' },
      ],
      ...[{ secret: '' }, { secret: 'x'.repeat(LIMITS.webhookSecretChars + 1) }, { secret: undefined }],
    ],
  },
};

const isOurs = (error: unknown) =>
  error instanceof AppError && ['INVALID_CONTENT', 'UNKNOWN_FIELD', 'INVALID_SSH_KEY'].includes(error.code);

for (const [type, { parse, sample, accepted, refused }] of Object.entries(SUBJECTS)) {
  describe(`content of ${type}`, () => {
    test('is read as it is; its signer may act for another address', () => {
      for (const change of [{}, ...accepted, { address: ADDRESS }, { address: 'tz1x' }]) {
        const value = { ...sample, ...change };
        assert.deepEqual(parse(value), value);
      }
    });

    test('anything else is refused', () => {
      for (const change of [
        ...refused,
        { address: '' },
        { address: null },
        { address: 'a\n' },
        { address: 'x'.repeat(129) },
      ]) {
        assert.throws(() => parse({ ...sample, ...change }), isOurs, JSON.stringify(change).slice(0, 200));
      }
      for (const value of [undefined, null, 1, 'x', []]) assert.throws(() => parse(value), isOurs);
      assert.throws(() => parse({ ...sample, colour: 1 }), { code: 'UNKNOWN_FIELD' });
    });

    test('any value is read or refused with an AppError', () => {
      const fields = Object.entries({ ...sample, address: ADDRESS }).map(
        ([name, value]): [string, fc.Arbitrary<unknown>] => [
          name,
          fc.oneof(fc.constant(value), fc.anything()),
        ],
      );
      const value = fc.oneof(fc.anything(), fc.record(Object.fromEntries(fields), { requiredKeys: [] }));
      fc.assert(
        fc.property(value, (content) => {
          try {
            parse(content);
          } catch (error) {
            assert.ok(isOurs(error), String(error));
          }
        }),
        { numRuns: 500 },
      );
    });
  });
}

test('no message about a webhook repeats its secret', () => {
  const secret = 'do-not-repeat-this';
  for (const change of [
    { secret: [secret] },
    { secret: secret.repeat(99) },
    { secret, url: 'x' },
    { secret, events: [] },
  ]) {
    assert.throws(
      () => parseWebhookContent({ ...SUBJECTS.WEBHOOK!.sample, ...change }),
      (error: AppError) => !JSON.stringify([error.message, error.details]).includes(secret),
    );
  }
});

describe('programs', () => {
  test('runtimes and their aliases', () => {
    const RUNTIMES: Record<string, [string, string | null]> = {
      nodejs: ['nodejs', null],
      nodejs16: ['nodejs', '16'],
      'nodejs20.x': ['nodejs', '20'],
      'node:22.1.0': ['nodejs', '22.1.0'],
      'node-v18': ['nodejs', '18'],
      python: ['python3', null],
      python3: ['python3', null],
      'python3.12': ['python3', '3.12'],
      'python:3.12.1': ['python3', '3.12.1'],
      wasm: ['wasm', null],
      wasi: ['wasm', null],
    };
    for (const [text, [runtime, version]] of Object.entries(RUNTIMES)) {
      assert.deepEqual(parseRuntime(text), { runtime, version }, text);
    }
    for (const bad of [
      '',
      'perl',
      'python2',
      'python2.7',
      'python312',
      'nodejs ',
      'nodejs1234',
      'node..1',
      'toString',
    ]) {
      assert.throws(() => parseRuntime(bad), { code: 'INVALID_CONTENT' }, bad);
    }
  });

  test('code is source text, or a file where it is nothing but a hash', () => {
    const code = (text: string) =>
      programOf(parseProgramContent({ ...SUBJECTS.PROGRAM!.sample, code: text })).code;
    const file = { kind: 'file', encoding: null, entrypoint: null, useLatest: false };
    for (const ref of [HASH, CID0, CID1]) assert.deepEqual(code(` ${ref}\n`), { ...file, ref });
    for (const text of ['x', ` ${HASH}; `, HASH.toUpperCase()])
      assert.deepEqual(code(text), { kind: 'source', text });
  });

  test('a program of this form, as nodes run it', () => {
    assert.deepEqual(programOf(parseProgramContent({ ...SUBJECTS.PROGRAM!.sample, runtime: 'nodejs16' })), {
      name: 'p',
      description: '',
      code: { kind: 'source', text: 'x' },
      runtime: { kind: 'named', runtime: 'nodejs', version: '16' },
      vcpus: 1,
      memoryMib: 128,
      timeoutSeconds: 10,
      variables: {},
      internet: false,
    });
  });
});

test('the owner is whom the content names, else the signer; EVM addresses have one spelling', () => {
  assert.equal(ownerOf(ADDRESS, {}), ADDRESS);
  assert.equal(ownerOf('x', { address: `0x${'AB'.repeat(20)}` }), `0x${'ab'.repeat(20)}`);
  assert.equal(ownerOf('x', { address: 'tz1Ab' }), 'tz1Ab');
  assert.equal(normaliseAddress('0XAB'), '0XAB');
});
