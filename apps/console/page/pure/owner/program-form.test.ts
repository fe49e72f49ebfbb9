import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseProgramContent } from '@skerry/protocol/forms';
import { EXAMPLES, readProgramForm, readVariables } from './program-form.ts';

test('each example is a program that a core node takes', () => {
  for (const { name, runtime, code, variables } of EXAMPLES) {
    const read = readProgramForm({ name: ` ${name}`, runtime, code, memory: '128', timeout: ' 10' });
    assert.ok('content' in read);
    assert.equal(parseProgramContent(read.content).name, name);
    assert.ok(readVariables(variables), name);
  }
});

test('a program that no core node takes is refused with what it takes', () => {
  const { name, runtime, code } = EXAMPLES[0]!;
  const faultOf = (change: object) => {
    const read = readProgramForm({ name, runtime, code, memory: '128', timeout: '30', ...change });
    return 'fault' in read ? read.fault : undefined;
  };
  assert.match(faultOf({ memory: '15' })!, /^The memory is a whole number of MiB from 16 to 65,536\.$/);
  assert.match(faultOf({ timeout: '0' })!, / of seconds from 1 to 3,600\.$/);
  assert.match(faultOf({ name: ' ' })!, /name/);
  assert.equal(faultOf({}), undefined);
});

test('variables are lines of name=value, and a value that is JSON is one', () => {
  assert.deepEqual(readVariables('a=1\n\n b = x\nc={"d":[true]}\ne='), {
    ...{ a: 1, b: ' x', c: { d: [true] } },
    e: '',
  });
  assert.deepEqual(readVariables(''), {});
  for (const wrong of ['a', '=1', 'a=1\nb']) assert.equal(readVariables(wrong), undefined, wrong);
});
