import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { inDirectory } from '../testing/directory.ts';
import { MACHINE_FILES } from './machine.ts';
import { readLastWords } from './machine-log.ts';

test('the last words of a QEMU that writes on at its old place, after its log was cut, are words', () =>
  inDirectory(async (directory) => {
    const log = (text: string) => writeFile(join(directory, MACHINE_FILES.log), text);
    await log(`long ago\n${'\0'.repeat(2_000_000)}terminating on signal 15\n`);
    assert.equal(await readLastWords(directory), ': terminating on signal 15');
    await log('\0'.repeat(10_000));
    assert.equal(await readLastWords(directory), '');
  }));
