import assert from 'node:assert/strict';
import { test } from 'node:test';
import { skerryPaths } from './paths.ts';

test('everything is below the home that is given, but for a cache of its own; what is empty is not given', () => {
  const { data, cache } = skerryPaths({ SKERRY_HOME: '/h', SKERRY_CACHE: '/c' });
  assert.deepEqual({ data, cache }, { data: '/h/data', cache: '/c' });
  assert.equal(skerryPaths({ SKERRY_HOME: '/h', SKERRY_CACHE: '' }).cache, '/h/cache');
  assert.equal(skerryPaths({ XDG_CACHE_HOME: '/x', SKERRY_CACHE: '' }).cache, '/x/skerry');
});
