import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { anyCharacter } from './characters.ts';

test('strings of any character are well formed, from the first to the last, and some are names that are dangerous', () => {
  const texts = fc.sample(fc.string({ unit: anyCharacter }), { seed: 1, numRuns: 2_000 });
  assert.ok(texts.every((text) => text.isWellFormed()));
  const points = texts.flatMap((text) => Array.from(text, (one) => one.codePointAt(0)!));
  assert.ok(points.includes(0) && points.some((point) => point > 0xffff));
  // fast-check puts them in where it knows how a unit makes them.
  assert.ok(texts.includes('__proto__'));
  for (const one of ['\ud7ff', '\ue000', '\u{10ffff}'])
    assert.ok(anyCharacter.canShrinkWithoutContext(one), one);
  for (const none of ['', 'ab', '\ud800', 1]) assert.ok(!anyCharacter.canShrinkWithoutContext(none));
});
