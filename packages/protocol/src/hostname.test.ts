import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { wordlist } from '@scure/bip39/wordlists/english.js';
import fc from 'fast-check';
import { AppError } from './errors.ts';
import { sha256Hex } from './hash.ts';
import { hasHostname, hostnameOf, prefixOfHostname } from './hostname.ts';

const { vectors } = JSON.parse(
  readFileSync(new URL('../vectors/hostnames.json', import.meta.url), 'utf8'),
) as {
  vectors: [string, string][];
};
const hash = fc
  .uint8Array({ minLength: 32, maxLength: 32 })
  .map((bytes) => Buffer.from(bytes).toString('hex'));

test('the word list is the one that the specification names', () => {
  assert.equal(wordlist.length, 2048);
  assert.equal(
    sha256Hex(`${wordlist.join('\n')}\n`),
    '2f5eed53a4727b4bf8880d8f3f199efc90e58503646d9ff8eff3a2ed3b24dbda',
  );
});

test('vectors, both directions', () => {
  assert.ok(vectors.length >= 6);
  for (const [itemHash, hostname] of vectors) {
    assert.equal(hostnameOf(itemHash), hostname);
    assert.equal(prefixOfHostname(hostname), BigInt(`0x${itemHash.slice(0, 11)}`));
    assert.ok(hasHostname(itemHash, hostname.toUpperCase()));
  }
});

test('a host name is exactly the top 44 bits of the hash', () => {
  fc.assert(
    fc.property(hash, (itemHash) => {
      assert.equal(prefixOfHostname(hostnameOf(itemHash)), BigInt(`0x${itemHash.slice(0, 11)}`));
      assert.equal(hostnameOf(itemHash.slice(0, 11) + '0'.repeat(53)), hostnameOf(itemHash));
    }),
  );
});

test('what is not four words of the list is refused', () => {
  for (const bad of [
    '',
    'abandon',
    'abandon-ability-able',
    'abandon-ability-able-about-above',
    'abandon-ability-able-skerry',
    '----',
  ]) {
    assert.throws(
      () => prefixOfHostname(bad),
      (error) => error instanceof AppError && error.code === 'INVALID_HOSTNAME',
    );
  }
});
