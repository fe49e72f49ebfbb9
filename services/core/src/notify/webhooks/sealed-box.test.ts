import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { createSealedBox, KEY_BYTES, openOften } from './sealed-box.ts';

describe('a sealed box', () => {
  const box = createSealedBox(randomBytes(KEY_BYTES));

  test('opens what it sealed, for the same purpose', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.string(), (text, purpose) => {
        const sealed = box.seal(text, purpose);
        assert.equal(box.open(sealed, purpose), text);
        assert.throws(() => box.open(sealed, `${purpose}.`));
      }),
    );
  });

  test('seals the same text otherwise each time, and shows nothing of it but its length', () => {
    const text = 'a secret of some length';
    const [one, two] = [box.seal(text, 'p'), box.seal(text, 'p')];
    assert.notDeepEqual(one, two);
    assert.equal(one.length, two.length);
    assert.equal(one.includes(text), false);
  });

  test('does not open bytes that were changed, cut short, or sealed by another key', () => {
    const sealed = box.seal('secret', 'p');
    for (let at = 0; at < sealed.length; at++) {
      const changed = Buffer.from(sealed);
      changed[at]! ^= 1;
      assert.throws(() => box.open(changed, 'p'));
      assert.throws(() => box.open(sealed.subarray(0, at), 'p'));
    }
    assert.throws(() => createSealedBox(randomBytes(KEY_BYTES)).open(sealed, 'p'));
  });

  test('what is opened often is opened once a second, for its own purpose, and then forgotten', (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    let opened = 0;
    const open = openOften({
      ...box,
      open(sealed, purpose) {
        opened++;
        return box.open(sealed, purpose);
      },
    });
    const [one, other] = [box.seal('one', 'p'), box.seal('other', 'p')];
    for (let round = 0; round < 3; round++)
      assert.deepEqual([open(one, 'p'), open(other, 'p')], ['one', 'other']);
    assert.equal(opened, 2);
    assert.throws(() => open(one, 'q'));
    t.mock.timers.tick(1_000);
    assert.equal(open(one, 'p'), 'one');
    assert.equal(opened, 4);
  });
});
