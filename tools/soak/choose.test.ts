import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chooseSoaks } from './choose.ts';

const FUZZERS = ['flights', 'native-flights', 'plane'];
const HTTP3 = 'services/gateway/src/http3.soak.test.ts';
const BULK = 'services/gateway/src/http3-bulk.soak.test.ts';
const UPGRADE = 'apps/cli/src/upgrade.soak.test.ts';
const choose = (...words: string[]) => {
  const { fuzzers, files } = chooseSoaks(words, FUZZERS, [HTTP3, BULK, UPGRADE]);
  return [...fuzzers, ...files];
};

test('a whole name stands for itself alone, a part for all that have it', () => {
  assert.deepEqual(choose('http3'), [HTTP3]);
  assert.deepEqual(choose('http3-bulk'), [BULK]);
  assert.deepEqual(choose('flights'), ['flights']);
  assert.deepEqual(choose('flight'), ['flights', 'native-flights']);
  assert.deepEqual(choose('services/gateway'), [HTTP3, BULK]);
  assert.deepEqual(choose('plane', 'upgrade'), ['plane', UPGRADE]);
  assert.deepEqual(choose('nothing'), []);
  assert.equal(choose().length, 6);
});
