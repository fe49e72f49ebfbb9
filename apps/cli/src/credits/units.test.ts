import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseCredits } from '../commands/credit.ts';
import { parseTokens, renderCredits, renderHourly, renderTokens } from './units.ts';

test('amounts of tokens are read exactly, and written back', () => {
  assert.deepEqual(
    [parseTokens('9.58', 6), parseTokens('7', 18), parseTokens('1', 0)],
    [9_580_000n, 7n * 10n ** 18n, 1n],
  );
  for (const wrong of ['', '-1', '1.', '.5', '1e3', '0.1234567'])
    assert.throws(() => parseTokens(wrong, 6), { code: 'INVALID_PARAMETERS' });
  fc.assert(
    fc.property(
      fc.bigInt({ min: 0n, max: 10n ** 30n - 1n }),
      fc.integer({ min: 0, max: 24 }),
      (amount, decimals) => {
        assert.equal(parseTokens(renderTokens(String(amount), decimals), decimals), amount);
      },
    ),
  );
});

test('credits and costs for people', () => {
  assert.deepEqual([parseCredits('5'), parseCredits('$5')], [5, 5_000_000]);
  for (const wrong of ['0', '$', '1.5', 'x']) assert.throws(() => parseCredits(wrong));
  assert.equal(renderCredits(-12_345_678), '-12,345,678');
  assert.deepEqual(
    [renderHourly('3958333333'), renderHourly('1234'), renderHourly('0')],
    ['14,250', '0.00444', '0'],
  );
});
