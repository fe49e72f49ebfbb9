import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AppError } from '@skerry/protocol';
import { RUNNING } from '../testing/run.ts';
import { checkName, checkUnused, suggestName } from './names.ts';

test('names that need no quotes are taken, others refused with what is allowed', () => {
  for (const name of ['web', 'web-2', 'A.b_c', '1234', 'x'.repeat(63)]) checkName(name);
  for (const name of ['bad name!', '', '-x', 'a/b', 'x'.repeat(64), 'ünicode', 'a\n'])
    assert.throws(() => checkName(name), { code: 'INVALID_PARAMETERS', message: /letters, digits, dots/ });
});

test('a name that the owner already uses is refused, with one that is free', () => {
  const instances = [RUNNING, { ...RUNNING, name: 'web-2', instance_id: 'e'.repeat(64) }];
  checkUnused('db', instances);
  assert.throws(
    () => checkUnused('web', instances),
    ({ code, details }: AppError) => {
      assert.equal(code, 'NAME_IN_USE');
      assert.deepEqual(details, {
        hint: 'choose another name, such as --name web-3',
        instance_id: RUNNING.instance_id,
      });
      return true;
    },
  );
  assert.equal(suggestName('web-2', new Set(['web', 'web-2'])), 'web-3');
});
