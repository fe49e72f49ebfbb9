import assert from 'node:assert/strict';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { inDirectory } from '../../testing/directory.ts';
import { CONSOLE_FILE_BYTES_MAX, ConsoleLog } from './console-log.ts';

describe('console', () => {
  test('lines are kept whole however their bytes are cut, and told to listeners', () =>
    inDirectory(async (directory) => {
      const console = new ConsoleLog(directory, () => 7);
      const heard: string[] = [];
      const stop = console.listen(({ text }) => heard.push(text));
      const bytes = new TextEncoder().encode('one\r\ntwo ü\nthree');
      for (const byte of bytes) await console.append(Uint8Array.of(byte));
      assert.deepEqual(await console.read(10), [
        { atMs: 7, text: 'one' },
        { atMs: 7, text: 'two ü' },
      ]);
      stop?.();
      await console.finish();
      assert.deepEqual(heard, ['one', 'two ü']);
      assert.deepEqual(
        (await new ConsoleLog(directory, () => 9).read(1)).map(({ text }) => text),
        ['three'],
      );
    }));

  test('a guest that prints without end, even without a line break, fills two files and no more', () =>
    inDirectory(async (directory) => {
      const console = new ConsoleLog(directory, () => 1);
      const chunk = new TextEncoder().encode(`${'x'.repeat(4_000)}\n`.repeat(20));
      for (let count = 0; count < 40; count++)
        await console.append(count % 2 === 0 ? chunk : chunk.subarray(0, 65_000));
      await console.finish();
      const files = await readdir(directory);
      assert.deepEqual(files.sort(), ['console.1.log', 'console.log']);
      for (const name of files)
        assert.ok((await stat(join(directory, name))).size < 2 * CONSOLE_FILE_BYTES_MAX);
    }));
});
