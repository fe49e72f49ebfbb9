import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseProgramContent } from '@skerry/protocol/forms';
import { EXAMPLES, readProgramForm, readVariables, showAnswer } from './program-form.ts';

test('each example is a program that a core node takes', () => {
  for (const { name, runtime, code, variables } of EXAMPLES) {
    const read = readProgramForm({ name: ` ${name}`, runtime, code, memory: '128', timeout: ' 10' });
    assert.ok('content' in read);
    assert.equal(parseProgramContent(read.content).name, name);
    assert.ok('variables' in readVariables(variables), name);
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

const variablesOf = (lines: string) => {
  const read = readVariables(lines);
  return 'variables' in read ? read.variables : undefined;
};

const faultOf = (lines: string) => {
  const read = readVariables(lines);
  return 'fault' in read ? read.fault : undefined;
};

test('variables are lines of name=value, and a value that is JSON is one', () => {
  assert.deepEqual(variablesOf('a=1\n\n b = x\nc={"d":[true]}\ne='), {
    ...{ a: 1, b: ' x', c: { d: [true] } },
    e: '',
  });
  assert.deepEqual(variablesOf(''), {});
  assert.deepEqual(variablesOf('id="12345678901234567890"'), { id: '12345678901234567890' });
  for (const [wrong, line] of [
    ['a', 1],
    ['=1', 1],
    [' =1', 1],
    ['a=1\n\nb', 3],
  ] as const)
    assert.equal(faultOf(wrong), `Line ${line}: a variable has the form name=value.`, wrong);
});

test('variables that would be sent as others than were typed are refused, with their line', () => {
  assert.match(faultOf('a=1\nid=12345678901234567890')!, /^Line 2: the number 1.* "12345678901234567890"\.$/);
  assert.match(faultOf('a=1e999')!, /^Line 1: .*a number too large to keep/);
  assert.match(faultOf('a={"x":1,"x":2}')!, /^Line 1: .*the key "x" twice/);
  assert.match(faultOf('a=1\nb=2\n a =3')!, /^Line 3: there is another line for a,/);
});

test('an answer is laid out where nothing of it is lost, and shown as it came where it would be', () => {
  assert.equal(showAnswer('{"a":[1]}'), '{\n  "a": [\n    1\n  ]\n}');
  for (const answer of ['{"id":12345678901234567890}', '{"x":1,"x":2}', '[1e999]', 'Ada'])
    assert.equal(showAnswer(answer), answer);
});
