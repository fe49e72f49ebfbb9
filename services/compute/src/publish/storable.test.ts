import assert from 'node:assert/strict';
import { test } from 'node:test';
import { scanJson } from '@skerry/protocol';
import fc from 'fast-check';
import { storableText } from './storable.ts';

test('whatever somebody wrote, a message can hold the beginning of it', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom('a', '\0', '\ud83d', '\ude00', '😀') }),
      fc.nat(9),
      (text, max) => {
        const stored = storableText(text, max);
        assert.ok(stored.length <= max);
        scanJson(JSON.stringify({ stored }));
      },
    ),
  );
  assert.equal(storableText('no 😀', 4), 'no ');
  assert.equal(storableText('no 😀', 5), 'no 😀');
});
