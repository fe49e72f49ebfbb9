import assert from 'node:assert/strict';
import { constants } from 'node:os';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { getSystemErrorName } from 'node:util';
import { createTestCore } from '../../testing/core.ts';
import { asStorageError } from './storage-error.ts';

/** As Node makes it of a number of the system. */
const systemError = (errno: number) =>
  Object.assign(new Error(`${getSystemErrorName(-errno)}, write`), {
    errno: -errno,
    code: getSystemErrorName(-errno),
    syscall: 'write',
  });

test('a used-up quota is a full disk, and a damaged file system or a stale mount is one that fails, though Node has no name for them', async () => {
  const { EDQUOT, ESTALE, EBADMSG, EIO } = constants.errno;
  const codeOf = (errno: number) => (asStorageError(systemError(errno)) as { code: string }).code;
  assert.equal(codeOf(EDQUOT), 'STORAGE_FULL');
  for (const errno of [ESTALE, EBADMSG, 117, EIO]) assert.equal(codeOf(errno), 'STORAGE_UNAVAILABLE');
  await using core = await createTestCore();
  const source = new Readable({ read: () => source.destroy(systemError(EDQUOT)) });
  await assert.rejects(core.blobs.receive(source, 100), { code: 'STORAGE_FULL' });
});
