import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AppError, ERRORS, isErrorCode } from './errors.ts';

test('every code is UPPER_SNAKE, has an error status and says what it means', () => {
  for (const [code, entry] of Object.entries(ERRORS)) {
    assert.match(code, /^[A-Z][A-Z0-9_]*$/);
    assert.ok(entry.httpStatus >= 400 && entry.httpStatus <= 599, code);
    assert.ok(entry.meaning.length > 10 && !entry.meaning.endsWith('.'), code);
  }
});

test('an error knows its kind and status; inherited names are not codes', () => {
  const error = new AppError('NOT_PERMITTED', 'no', { cause: new Error('why') });
  assert.equal(error.httpStatus, 403);
  assert.equal(error.kind, 'refused');
  assert.ok(isErrorCode('INTERNAL') && !isErrorCode('toString') && !isErrorCode(undefined));
});
