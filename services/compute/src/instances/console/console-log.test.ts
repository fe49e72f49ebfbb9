import assert from 'node:assert/strict';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { inDirectory } from '../../testing/directory.ts';
import { CONSOLE_FILE_BYTES_MAX, ConsoleLog, LINES_KEPT_MAX, LINES_TOLD_MAX } from './console-log.ts';

const bytesOf = (text: string) => new TextEncoder().encode(text);

/** Of all threads of this process (proc(5)). */
const bytesRead = async () => Number(/^rchar: ([0-9]+)$/m.exec(await readFile('/proc/self/io', 'utf8'))![1]);

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

  test('a guest that prints nothing but ends of lines makes little work of them, however many listen, and is told what is left out', () =>
    inDirectory(async (directory) => {
      const console = new ConsoleLog(directory, () => 1);
      const heard: string[][] = Array.from({ length: 16 }, () => []);
      for (const one of heard) console.listen(({ text }) => one.push(text));
      await console.append(new Uint8Array(65_536).fill(10));
      const told = LINES_TOLD_MAX / 16;
      for (const one of heard) {
        assert.equal(one.length, told + 1);
        assert.equal(one[0], `[${65_536 - told} lines are left out here]`);
      }
      const kept = await console.read(100_000);
      assert.deepEqual(
        [kept.length, kept[0]?.text],
        [LINES_KEPT_MAX + 1, `[${65_536 - LINES_KEPT_MAX} lines are left out here]`],
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

  test('who reads the last lines again and again has no more of the files read than these, whatever the guest printed in them', () =>
    inDirectory(async (directory) => {
      const console = new ConsoleLog(directory, () => 1);
      for (let at = 0; at < 1_000; at++) await console.append(bytesOf(`${at} ${'x'.repeat(1_000)}\n`));
      await console.append(bytesOf(`0%\r50%\r100%\nline\u2028separator\n`));
      const whole = await console.read(10_000);
      assert.deepEqual(
        whole.map(({ text }) => Number.parseInt(text, 10)).slice(0, -2),
        Array.from({ length: whole.length - 2 }, (_, index) => 1_000 - whole.length + 2 + index),
      );
      const before = await bytesRead();
      for (let count = 0; count < 100; count++)
        assert.deepEqual(
          (await console.read(2)).map(({ text }) => text),
          ['0%\r50%\r100%', 'line\u2028separator'],
        );
      const read = (await bytesRead()) - before;
      assert.ok(read < 20 * 1024 ** 2, `${read} bytes`);
      const all = await Promise.all(Array.from({ length: 4 }, () => console.read(10_000)));
      for (const one of all) assert.deepEqual(one, whole);
    }));
});
