import assert from 'node:assert/strict';
import { test } from 'node:test';
import { agreementOf, otherNodes, readList } from './agree.ts';

const said = (url: string, text: string | null) => ({
  url,
  said: text,
  why: text === null ? 'it does not answer' : null,
});

test('nodes agree where all that answer say what the first one says', () => {
  const [own, same, other, silent] = [said('a', '1'), said('b', '1'), said('c', '2'), said('d', null)];
  assert.deepEqual(agreementOf([own, same, silent]), {
    kind: 'agree',
    same: [same],
    others: [],
    silent: [silent],
  });
  assert.equal(agreementOf([own, same, other]).kind, 'differ');
  assert.deepEqual(agreementOf([own, same, other]).others, [other]);
  assert.equal(agreementOf([own]).kind, 'alone');
  assert.equal(agreementOf([own, silent]).kind, 'alone');
  assert.equal(agreementOf([said('a', null), same]).kind, 'alone');
  assert.equal(agreementOf([]).kind, 'alone');
});

test('other nodes are asked once each, by their origin, and nothing that is no HTTP', () => {
  const urls = [
    'http://b/x',
    'http://b',
    'http://own/',
    'javascript:alert(1)',
    'ftp://c',
    'http://[',
    'https://d',
  ];
  assert.deepEqual(otherNodes('http://own', urls, 5), ['http://b', 'https://d']);
  assert.deepEqual(otherNodes('http://own', urls, 1), ['http://b']);
});

test('a list is what stands between spaces, commas and lines', () => {
  assert.deepEqual(readList(' 0xa, 0xb\n0xa '), ['0xa', '0xb']);
  assert.deepEqual(readList(''), []);
  assert.equal(readList('x'.repeat(201)), undefined);
  assert.equal(readList(Array.from({ length: 51 }, (_, at) => at).join(' ')), undefined);
});
