import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseProgramContent } from '@skerry/protocol/forms';
import { EXAMPLES, readVariables } from './program-form.ts';

test('each example is a program that a core node takes', () => {
  for (const { name, runtime, code, variables } of EXAMPLES) {
    parseProgramContent({ name, runtime, code, memory: 128, timeout: 10 });
    assert.ok(readVariables(variables), name);
  }
});

test('variables are lines of name=value, and a value that is JSON is one', () => {
  assert.deepEqual(readVariables('a=1\n\n b = x\nc={"d":[true]}\ne='), {
    ...{ a: 1, b: ' x', c: { d: [true] } },
    e: '',
  });
  assert.deepEqual(readVariables(''), {});
  for (const wrong of ['a', '=1', 'a=1\nb']) assert.equal(readVariables(wrong), undefined, wrong);
});
