import assert from 'node:assert/strict';
import { open } from 'node:fs/promises';
import { constants } from 'node:os';
import { test } from 'node:test';
import { getSystemErrorName } from 'node:util';
import { systemCodeOf } from './system-code.ts';

test('an error of a disk that Node has no name for is known by its number, every other one by its code', async () => {
  const { EBADMSG, ESTALE, EDQUOT } = constants.errno;
  for (const [name, number] of Object.entries({ EBADMSG, ESTALE, EDQUOT, EUCLEAN: 117 })) {
    const code = getSystemErrorName(-number);
    assert.match(code, /^Unknown system error/);
    assert.equal(systemCodeOf(Object.assign(new Error(name), { errno: -number, code })), name);
  }
  await assert.rejects(open('/nonexistent/file'), (error) => systemCodeOf(error) === 'ENOENT');
  assert.equal(systemCodeOf(new Error('no error of the system')), undefined);
  assert.equal(systemCodeOf(undefined), undefined);
});
