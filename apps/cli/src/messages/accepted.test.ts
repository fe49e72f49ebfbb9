import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AppError } from '@skerry/protocol';
import { describeFailure } from '../failure.ts';
import { createOutput } from '../output/output.ts';
import { afterAccepted } from './accepted.ts';

const accepted = { what: 'instance 12 was created', ids: { instance_id: '12' }, hint: 'look at it' };
const output = createOutput(process.stdout, process.stderr, { json: false, colours: false });
const failing = async (cause: unknown) =>
  describeFailure(
    await afterAccepted(output, accepted, () => Promise.reject(cause)).catch((error: unknown) => error),
  );

test('what fails once a message was accepted says what was done, whatever fails', async () => {
  const { body, hint, exitCode } = await failing(new AppError('UPSTREAM_UNAVAILABLE', 'no answer'));
  assert.equal(body.error, 'instance 12 was created, but no answer');
  assert.deepEqual(body.details, { hint: 'look at it', instance_id: '12' });
  assert.deepEqual([body.code, hint, exitCode], ['UPSTREAM_UNAVAILABLE', 'look at it', 5]);

  const own = new AppError('TIMED_OUT', 'too late', { details: { hint: 'wait', phase: 'starting' } });
  assert.deepEqual((await failing(own)).body.details, {
    ...{ hint: 'wait', phase: 'starting' },
    instance_id: '12',
  });

  const refused = Object.assign(new Error('EACCES: permission denied'), { syscall: 'open' });
  assert.equal((await failing(refused)).body.error, 'instance 12 was created, but EACCES: permission denied');
  assert.match((await failing(new TypeError('oops'))).body.error, /was created, but TypeError: oops\n +at /);
  assert.equal(await afterAccepted(output, accepted, async () => 1), 1);
});

test('of a second message whose answer was lost, its own hash and hint are told; no other failure says of whom the ids are', async () => {
  const stored = {
    what: 'f was stored',
    ids: { file_hash: 'f', item_hash: '1' },
    hint: 'it is stored only once',
  };
  const after = async (code: 'UPSTREAM_UNAVAILABLE' | 'INTERNAL' | 'OVERLOADED', details: object) => {
    const failed = Promise.reject(new AppError(code, 'no answer', { details }));
    const error = await afterAccepted(output, stored, () => failed).catch((caught: unknown) => caught);
    return describeFailure(error);
  };
  const second = '2'.repeat(64);
  for (const code of ['UPSTREAM_UNAVAILABLE', 'INTERNAL'] as const) {
    const { body, hint } = await after(code, { item_hash: second });
    assert.deepEqual(body.details, { file_hash: 'f', item_hash: second });
    assert.match(hint ?? '', new RegExp(`"skerry message get ${second}"`));
  }
  const { body, hint } = await after('OVERLOADED', { item_hash: second, file_hash: 'g' });
  assert.deepEqual(body.details, { ...stored.ids, hint });
  assert.equal(hint, 'it is stored only once');
});
