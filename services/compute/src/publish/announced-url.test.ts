import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findAnnouncedUrlFault } from './announced-url.ts';

const NODE = { announceUrl: undefined, host: 'localhost', port: 4020, coreUrl: 'https://core.example' };

test('a node of a network elsewhere never announces this machine’s loopback', () => {
  for (const one of [
    NODE,
    { ...NODE, host: '::' },
    { ...NODE, host: '0.0.0.0' },
    { ...NODE, host: '127.0.0.1' },
    { ...NODE, host: '::1' },
    { ...NODE, host: '192.0.2.7', announceUrl: 'http://127.0.0.1:4020' },
    { ...NODE, announceUrl: 'http://a.localhost:4020' },
  ])
    assert.match(findAnnouncedUrlFault(one) ?? 'no fault', /SKERRY_COMPUTE_ANNOUNCE_URL/);
  assert.match(findAnnouncedUrlFault({ ...NODE, announceUrl: 'me:4020 ' }) ?? 'no fault', /ANNOUNCE_URL/);
});

test('on one machine loopback is right, and so is any other address anywhere', () => {
  for (const one of [
    { ...NODE, coreUrl: 'http://localhost:4024' },
    { ...NODE, coreUrl: 'http://127.0.0.1:4024' },
    { ...NODE, coreUrl: 'http://[::1]:4024' },
    { ...NODE, host: '192.0.2.7' },
    { ...NODE, host: '::', announceUrl: 'https://node.example' },
  ])
    assert.equal(findAnnouncedUrlFault(one), undefined);
});
