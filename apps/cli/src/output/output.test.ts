import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createOutput } from './output.ts';

/** What is written on standard error. */
function demanded(json: boolean): string {
  let said = '';
  const errors = { write: (text: string) => (said += text) } as unknown as NodeJS.WriteStream;
  const output = createOutput(errors, errors, { json, colours: false });
  output.note('beside it');
  output.demand('Run this', 'skerry core');
  return said;
}

test('what somebody must do is said to people and to programs', () => {
  assert.equal(demanded(false), 'beside it\nRun this:\n  skerry core\n');
  assert.deepEqual(JSON.parse(demanded(true)), { demand: 'Run this', command: 'skerry core' });
});
