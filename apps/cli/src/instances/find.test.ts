import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hostnameOf } from '@skerry/protocol';
import { RUNNING } from '../testing/run.ts';
import { matchInstances, subdomainOf } from './find.ts';

const WEB = RUNNING;
const DB = { ...RUNNING, name: 'db', instance_id: `12ff${'0'.repeat(60)}` };
const ODD = { ...RUNNING, name: '1234', instance_id: 'e'.repeat(64) };
const idsFor = (reference: string) =>
  matchInstances([WEB, DB, ODD], reference).map(({ instance_id: id }) => id);

test('by name before all else', () => {
  assert.deepEqual(idsFor('web'), [WEB.instance_id]);
  assert.deepEqual(idsFor('1234'), [ODD.instance_id]);
});

test('by four words, with or without the domain, whatever the case', () => {
  const words = hostnameOf(DB.instance_id);
  assert.deepEqual(idsFor(words), [DB.instance_id]);
  assert.deepEqual(idsFor(`${words.toUpperCase()}.skerry.localhost`), [DB.instance_id]);
});

test('by the beginning of the id, of at least four digits', () => {
  assert.deepEqual(idsFor('12ff'), [DB.instance_id]);
  assert.deepEqual(idsFor('1234A'), [WEB.instance_id]);
  assert.deepEqual(idsFor('12'), []);
});

test('two of a name are both told', () => {
  assert.equal(matchInstances([WEB, { ...DB, name: 'web' }], 'web').length, 2);
  assert.deepEqual(idsFor('nothing'), []);
});

test('four words are four words of the list', () => {
  assert.equal(subdomainOf('zoo-zoo-zoo-zoo.example.org'), 'zoo-zoo-zoo-zoo');
  for (const text of ['zoo', 'zoo-zoo-zoo', 'a-b-c-d', '']) assert.equal(subdomainOf(text), undefined);
});
