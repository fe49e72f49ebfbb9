import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import fc from 'fast-check';
import { verifyEnvelope } from './envelope.ts';
import { AppError } from './errors.ts';
import { evmAddressOf } from './evm/address.ts';
import { personalSignDigest } from './evm/personal-digest.ts';
import { itemHashOf, sha256Hex } from './hash.ts';
import { bytesToHex } from './hex.ts';
import { LIMITS } from './limits.ts';

const KEY = new Uint8Array(32).fill(0x11);
const ADDRESS = evmAddressOf(secp256k1.getPublicKey(KEY, false));
const NOW = 1_800_000_000;

function sign(text: string): string {
  const signature = secp256k1.sign(personalSignDigest(text), KEY, { prehash: false, format: 'recovered' });
  return `0x${bytesToHex(signature.subarray(1))}${(27 + signature[0]!).toString(16)}`;
}

const message = {
  chain: 'ETH',
  channel: 'c',
  type: 'POST',
  timestamp: NOW,
  content: { b: 1, a: [2.5e3, 'é'] },
};
const envelope = (text: string) => `{"message":${text},"signature":"${sign(text)}","address":"${ADDRESS}"}`;

test('the page for authors of clients has an envelope that is right, with its digest and its hash', () => {
  const page = readFileSync(new URL('../../../docs/wire-forms.md', import.meta.url), 'utf8');
  const [, body = '', after = ''] = /```json\n(\{"message":[^\n]*)\n```(.*?)\n## /s.exec(page) ?? [];
  const { sourceText, itemHash, sender } = verifyEnvelope(body, NOW);
  assert.ok(sourceText !== null);
  assert.equal(body, `{"message":${sourceText},"signature":"${sign(sourceText)}","address":"${ADDRESS}"}`);
  assert.equal(sender, ADDRESS);
  assert.ok(after.includes(`\`${itemHash}\``));
  assert.ok(after.includes(`\`${bytesToHex(personalSignDigest(sourceText))}\``));
  assert.ok(after.includes(`${new TextEncoder().encode(sourceText).length} bytes of UTF-8`));
});

test('a verified message keeps the text that was signed, and is named by chain, sender and that text', () => {
  const text = ` ${JSON.stringify(message, null, 1)}`.trim();
  const verified = verifyEnvelope(envelope(text), NOW);
  assert.equal(verified.sourceText, text);
  assert.equal(verified.itemHash, sha256Hex(`ETH\n${ADDRESS}\n${text}`));
  assert.equal(verified.itemHash, itemHashOf('ETH', ADDRESS, text));
  assert.equal(verified.sender, ADDRESS);
  assert.deepEqual(verified.content, message.content);
});

test('without a signature or an address it is not signed, however that is said', () => {
  const signed = JSON.parse(envelope(JSON.stringify(message)));
  for (const name of ['signature', 'address'])
    for (const none of [undefined, null, ''])
      assert.throws(
        () => verifyEnvelope(JSON.stringify({ ...signed, [name]: none }), NOW),
        { code: 'SIGNATURE_REQUIRED' },
        `${name}: ${none}`,
      );
});

test('the clock: ten minutes ahead is the limit, the past has none', () => {
  const at = (timestamp: number) => verifyEnvelope(envelope(JSON.stringify({ ...message, timestamp })), NOW);
  assert.equal(at(NOW + LIMITS.futureSeconds).time, NOW + LIMITS.futureSeconds);
  assert.equal(at(0).time, 0);
  assert.throws(() => at(NOW + LIMITS.futureSeconds + 1), { code: 'TIMESTAMP_IN_FUTURE' });
});

test('no change of a signed body is accepted, whatever byte it touches; no failure is anything but an AppError', () => {
  const body = Buffer.from(envelope(JSON.stringify(message)));
  const original = verifyEnvelope(body, NOW);
  fc.assert(
    fc.property(fc.nat(body.length - 1), fc.nat(255), (index, byte) => {
      const changed = Buffer.from(body);
      changed[index] = byte;
      try {
        // What still verifies is the same message: a changed letter case of the address, say.
        assert.equal(verifyEnvelope(changed, NOW).itemHash, original.itemHash);
      } catch (error) {
        assert.ok(error instanceof AppError, String(error));
      }
    }),
    { numRuns: 1500 },
  );
});

test('arbitrary JSON never makes it throw anything else (fuzz)', () => {
  const wild = fc.record(
    {
      message: fc.oneof(
        fc.jsonValue(),
        fc.record({
          chain: fc.constantFrom('ETH', 1, 'x'),
          channel: fc.string(),
          type: fc.string(),
          timestamp: fc.anything(),
          content: fc.jsonValue(),
        }),
      ),
      signature: fc.oneof(fc.string(), fc.jsonValue()),
      address: fc.oneof(fc.constant(ADDRESS), fc.jsonValue()),
    },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(wild, (value) => {
      assert.throws(() => verifyEnvelope(JSON.stringify(value), NOW), AppError);
    }),
    { numRuns: 500 },
  );
});
