import assert from 'node:assert/strict';
import { test } from 'node:test';
import { renderPrice } from './price.ts';

test('what an instance costs, and what follows when nobody pays', () => {
  assert.equal(
    renderPrice(3_958_333_333n, false),
    'costs 14,250 credits an hour, 341,999 a day; nothing is stopped when your credit is used up',
  );
  assert.match(
    renderPrice(1_000_000_000n, true),
    /^costs 3,600 credits an hour, 86,400 a day; it is refused/,
  );
  assert.equal(renderPrice(0n, false), 'costs nothing: no price is published');
});
