import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { AppError } from '../errors.ts';
import { bytesToHex } from '../hex.ts';
import {
  ASKED_FILES_BODY_BYTES,
  ASKED_FILES_MAX,
  decodeAskedFiles,
  decodeHeldFiles,
  encodeAskedFiles,
  encodeHeldFiles,
  HELD_FILES_BODY_BYTES,
} from './files.ts';

const name = fc.uint8Array({ minLength: 32, maxLength: 32 }).map(bytesToHex);
const names = fc.uniqueArray(name, { maxLength: 40 });
const isRefused = (error: unknown) => error instanceof AppError && error.code === 'INVALID_PARAMETERS';

test('names of files, and which of them are there, come back as they were sent', () => {
  fc.assert(
    fc.property(names, fc.array(fc.boolean(), { minLength: 40, maxLength: 40 }), (asked, which) => {
      assert.deepEqual(decodeAskedFiles(encodeAskedFiles(asked)), asked);
      const held = asked.filter((_, at) => which[at]);
      assert.deepEqual(decodeHeldFiles(encodeHeldFiles(asked, new Set(held)), asked), held);
    }),
  );
});

test('a question of as many files as may be asked for fits, and none of one more', () => {
  const asked = Array.from({ length: ASKED_FILES_MAX + 1 }, (_, n) => n.toString(16).padStart(64, '0'));
  const most = asked.slice(1);
  const body = encodeAskedFiles(most);
  assert.equal(body.length, ASKED_FILES_BODY_BYTES);
  assert.equal(decodeAskedFiles(body).length, ASKED_FILES_MAX);
  assert.equal(encodeHeldFiles(most, new Set(most)).length, HELD_FILES_BODY_BYTES);
  assert.throws(() => decodeAskedFiles(encodeAskedFiles(asked)), isRefused);
});

test('any other bytes are refused, or are written so and no other way', () => {
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 100 }),
    fc.uint8Array({ maxLength: 6 }).map((rest) => Uint8Array.of(1, ...rest)),
    fc.uint8Array({ minLength: 64, maxLength: 64 }).map((rest) => Uint8Array.of(1, ...rest)),
  );
  const isOrRefused = (read: () => Uint8Array, body: Uint8Array) => {
    try {
      assert.deepEqual(read(), body);
    } catch (error) {
      if (!isRefused(error)) throw error;
    }
  };
  fc.assert(
    fc.property(bytes, names, (body, asked) => {
      isOrRefused(() => encodeAskedFiles(decodeAskedFiles(body)), body);
      isOrRefused(() => encodeHeldFiles(asked, new Set(decodeHeldFiles(body, asked))), body);
    }),
  );
});
