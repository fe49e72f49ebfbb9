import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseExactJson } from './exact.ts';

test('a number that would be rounded is refused, wherever it is', () => {
  const kept = '[0,-0,0.10,1.50e3,1E-7,9007199254740991,1e21,5e-324]';
  assert.deepEqual(parseExactJson(kept), JSON.parse(kept));
  for (const text of ['12345678901234567890', '{"a":[-9007199254740993]}', '0.12345678901234567890'])
    assert.throws(() => parseExactJson(text), { code: 'INVALID_JSON', message: /would become/ }, text);
});

test('what is no JSON is told from JSON of which something would be lost', () => {
  for (const text of ['', 'Ada', '01']) assert.throws(() => parseExactJson(text), SyntaxError, text);
  for (const text of ['1e999', '{"x":1,"x":2}', '"\\ud800"'])
    assert.throws(() => parseExactJson(text), { code: 'INVALID_JSON' }, text);
});
