import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AppError } from '@skerry/protocol/forms';
import { describeFailure, renderFailure } from '../failure.ts';
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

test('what a node of somebody else says steers no terminal, in results, notes and errors', () => {
  const STEERING = 'a\u009d[0m\u001b[2Jb\u001b]52;c;Zg==\u0007c\u009b3Ad\re';
  let said = '';
  const stream = { write: (text: string) => (said += text) } as unknown as NodeJS.WriteStream;
  const output = createOutput(stream, stream, { json: false, colours: true });
  output.result({}, `\u001b[32mgood\u001b[39m\n\t${STEERING}`);
  assert.ok(said.startsWith('\u001b[32mgood\u001b[39m\n\ta'), JSON.stringify(said));
  output.note(STEERING);
  said += renderFailure(describeFailure(new AppError('NOT_PERMITTED', STEERING)), false);
  const uncoloured = said.replace('\u001b[32m', '').replace('\u001b[39m', '');
  assert.doesNotMatch(uncoloured, /[^\P{Cc}\n\t]/u);
});

test('results that come one by one are lines: JSON for programs, and for people nothing that moves a terminal', () => {
  let told = '';
  const stream = { write: (text: string) => (told += text) } as unknown as NodeJS.WriteStream;
  for (const json of [true, false])
    createOutput(stream, stream, { json, colours: false }).next({ line: 'a\u001b[2J' }, 'a\u001b[2J');
  assert.equal(told, '{"line":"a\\u001b[2J"}\na\n');
});

test('bytes of others pass as they are, but on a terminal as text that does not steer it', async () => {
  const written: (string | Uint8Array)[] = [];
  const bytes = Buffer.from('é\u001b]0;title\u0007\u001b[2Jb\n');
  for (const isTTY of [false, true]) {
    const stream = { isTTY, write: (chunk: string) => written.push(chunk) > 0 };
    const output = createOutput(stream as never, stream as never, { json: false, colours: isTTY });
    // In the middle of a character.
    for (const part of [bytes.subarray(0, 1), bytes.subarray(1)]) await output.bytes(part);
  }
  assert.deepEqual(Buffer.concat(written.slice(0, 2) as Uint8Array[]), bytes);
  assert.equal(written.slice(2).join(''), 'éb\n');
});
