import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { directory, encodeCpio, file } from './cpio.ts';

/** Reads the "newc" form back, as the kernel does. */
function decode(archive: Buffer): { path: string; mode: number; data: string }[] {
  const entries: { path: string; mode: number; data: string }[] = [];
  const up = (offset: number) => Math.ceil(offset / 4) * 4;
  for (let at = 0; ; ) {
    assert.equal(archive.toString('latin1', at, at + 6), '070701');
    const field = (index: number) =>
      Number.parseInt(archive.toString('latin1', at + 6 + index * 8, at + 14 + index * 8), 16);
    const nameEnd = at + 110 + field(11);
    const path = archive.toString('utf8', at + 110, nameEnd - 1);
    const start = up(nameEnd);
    if (path === 'TRAILER!!!') return entries;
    entries.push({ path, mode: field(1), data: archive.toString('latin1', start, start + field(6)) });
    at = up(start + field(6));
  }
}

describe('encodeCpio', () => {
  test('what is written is read back, whatever the lengths', () => {
    const path = fc.stringMatching(/^[a-z][a-z0-9/._-]{0,40}$/);
    fc.assert(
      fc.property(fc.array(fc.tuple(path, fc.uint8Array({ maxLength: 70 }))), (files) => {
        const archive = encodeCpio(files.map(([name, data]) => file(name, data, 0o755)));
        assert.equal(archive.length % 4, 0);
        const expected = files.map(([name, data]) => ({
          path: name,
          mode: 0o100755,
          data: Buffer.from(data).toString('latin1'),
        }));
        assert.deepEqual(decode(archive), expected);
      }),
    );
  });

  test('the same input gives the same bytes', () => {
    const make = () => encodeCpio([directory('bin'), file('bin/a', new TextEncoder().encode('x'))]);
    assert.deepEqual(make(), make());
  });

  test('cpio(1) reads it, where it is installed', (context) => {
    const archive = encodeCpio([directory('bin'), file('bin/a', new TextEncoder().encode('hello'), 0o755)]);
    try {
      assert.equal(execFileSync('cpio', ['-t', '--quiet'], { input: archive }).toString(), 'bin\nbin/a\n');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      context.diagnostic('cpio is not installed');
    }
  });
});
