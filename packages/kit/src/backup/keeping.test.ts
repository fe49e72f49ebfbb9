import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findKept, type Kept, type KeptKind, mayHold } from './keeping.ts';

const ENTRIES: readonly Kept[] = [
  { path: 'key', kind: 'secret', what: '' },
  { path: 'programs/waiting.json', kind: 'state', what: '' },
  { path: 'programs/', kind: 'passing', what: '' },
  { path: 'files/', kind: 'files', what: '' },
  { path: 'upload-*', kind: 'passing', what: '' },
];
const kindOf = (path: string) => findKept(ENTRIES, path)?.kind;
const is = (kind: KeptKind) => (one: KeptKind) => one === kind;

test('the first entry that fits a path counts', () => {
  assert.equal(kindOf('key'), 'secret');
  assert.equal(kindOf('key/below'), undefined);
  assert.equal(kindOf('other'), undefined);
  assert.equal(kindOf('programs/waiting.json'), 'state');
  assert.equal(kindOf('programs/lib/a'), 'passing');
  assert.equal(kindOf('upload-1.tmp'), 'passing');
  assert.equal(kindOf('running.lock'), 'passing');
});

test('a directory is looked into where something wanted may be in it, whatever the rest of it is', () => {
  assert.ok(mayHold(ENTRIES, 'programs', is('state')));
  assert.ok(!mayHold(ENTRIES, 'programs/lib', is('state')));
  assert.ok(!mayHold(ENTRIES, 'files', is('state')));
  assert.ok(mayHold(ENTRIES, 'files', is('files')));
  assert.ok(mayHold(ENTRIES, 'unknown', is('state')));
});
