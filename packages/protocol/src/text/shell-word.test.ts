import assert from 'node:assert/strict';
import { test } from 'node:test';
import { shellWord } from './shell-word.ts';

test('whatever a text holds, it is one word of a shell', () => {
  for (const plain of ['draw-7', '/var/lib/skerry/node.key', 'https://core.example.org:4024'])
    assert.equal(shellWord(plain), plain);
  assert.equal(shellWord('/srv/my node'), "'/srv/my node'");
  assert.equal(shellWord('http://[::1]:4024'), "'http://[::1]:4024'");
  assert.equal(shellWord("it's $HOME"), `'it'\\''s $HOME'`);
  assert.equal(shellWord(''), "''");
});
