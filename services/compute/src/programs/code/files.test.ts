import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { sha256Hex } from '@skerry/protocol';
import type { CidSource } from '../../files/cid-file.ts';
import { inDirectory } from '../../testing/directory.ts';
import { CodeFiles } from './files.ts';

test('code is fetched once, whatever a process that was killed, or a damaged disk, left beside it', () =>
  inDirectory(async (directory) => {
    const code = 'def main(variables): pass';
    const name = sha256Hex(code);
    let fetched = 0;
    const getFile = async () => {
      fetched++;
      return new Response(code);
    };
    // Which one a directory lists first is its own affair.
    for (let index = 0; index < 16; index++) {
      const end = index.toString(16).padStart(12, '0');
      await writeFile(join(directory, `${name}.${name}.${end}.draft`), 'def');
      await writeFile(join(directory, `${name}.${sha256Hex(end)}`), 'def');
    }
    const files = new CodeFiles({ getFile } as unknown as CidSource, directory);
    for (const _ of ['the first time', 'later']) assert.equal(`${await files.read(name)}`, code);
    assert.equal(fetched, 1);
  }));
