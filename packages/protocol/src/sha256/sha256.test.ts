import assert from 'node:assert/strict';
import test from 'node:test';
import fc from 'fast-check';
import { anyCharacter } from '../testing/characters.ts';
import * as portable from './portable.ts';
import * as system from './system.ts';

const text = fc.string({ unit: anyCharacter, maxLength: 300 });
/** Halves of surrogate pairs among them. */
const torn = fc.array(fc.nat(0xffff), { maxLength: 100 }).map((codes) => String.fromCharCode(...codes));

test('SHA-256 of a text or of bytes is the same in browsers and in Node', () => {
  fc.assert(
    fc.property(fc.oneof(text, torn, fc.uint8Array({ maxLength: 300 })), (input) => {
      assert.equal(system.sha256Hex(input), portable.sha256Hex(input));
    }),
  );
  // FIPS 180-2, appendix B.1.
  assert.equal(system.sha256Hex('abc'), 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
});
