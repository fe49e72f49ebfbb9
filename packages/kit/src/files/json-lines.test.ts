import assert from 'node:assert/strict';
import { appendFile, mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { anyCharacter } from '@skerry/protocol/testing/characters';
import fc from 'fast-check';
import { createLogger } from '../daemon/log.ts';
import { JsonLines, type JsonLinesOptions } from './json-lines.ts';

interface Line {
  readonly n: number;
  readonly text: string;
}

function parse(value: unknown): Line | undefined {
  const { n, text } = value as Line;
  return typeof n === 'number' && typeof text === 'string' ? { n, text } : undefined;
}

const log = createLogger('test', 'silent');
const RUNS = { numRuns: 60 };
let root: string;
before(async () => {
  root = await mkdtemp(join(tmpdir(), 'skerry-json-lines-'));
});
after(() => rm(root, { recursive: true, force: true }));

let count = 0;
const freshPath = () => join(root, `${count++}.jsonl`);
const open = (path: string, more: Partial<JsonLinesOptions<Line>> = {}) =>
  JsonLines.open({ path, parse, log, ...more });
const read = async (path: string) => (await open(path)).lines;
const lines = (from: number, to: number, text = 'x'): Line[] =>
  Array.from({ length: to - from }, (_, index) => ({ n: from + index, text }));

/** Any text, line ends and halves of characters included. */
const anyLines = fc
  .array(fc.string({ unit: anyCharacter }), { minLength: 1, maxLength: 6 })
  .map((texts) => texts.map((text, n) => ({ n, text: text.toWellFormed() })));

describe('a journal', () => {
  test('gives back what was appended, in order, over any number of openings', async () => {
    const path = freshPath();
    assert.deepEqual(await read(path), []);
    await assert.rejects(stat(path), { code: 'ENOENT' }, 'reading makes no file');
    for (let opened = 0; opened < 3; opened++) {
      const { journal } = await open(path);
      await journal.append([]);
      await journal.append(lines(3 * opened, 3 * opened + 2));
      await journal.append(lines(3 * opened + 2, 3 * opened + 3));
    }
    assert.deepEqual(await read(path), lines(0, 9));
    assert.equal((await stat(path)).mode & 0o777, 0o600);
  });

  test('keeps the order of appends at the same time', async () => {
    const path = freshPath();
    const { journal } = await open(path);
    await Promise.all(lines(0, 200).map((line) => journal.append([line])));
    assert.deepEqual(await read(path), lines(0, 200));
  });

  test('cut off at any byte, it gives the lines before, and takes more', async () => {
    await fc.assert(
      fc.asyncProperty(anyLines, fc.nat(), async (before, at) => {
        const path = freshPath();
        const { journal } = await open(path);
        await journal.append(before);
        const bytes = await readFile(path);
        const cut = at % (bytes.length + 1);
        await writeFile(path, bytes.subarray(0, cut));
        // A line whose end alone is missing is whole.
        const ends = [...bytes.keys()].filter((index) => bytes[index] === 0x0a);
        const whole = before.slice(0, ends.filter((end) => end <= cut).length);
        const opened = await open(path);
        assert.deepEqual(opened.lines, whole);
        await opened.journal.append(lines(100, 102));
        assert.deepEqual(await read(path), [...whole, ...lines(100, 102)]);
      }),
      RUNS,
    );
  });

  test('whatever bytes follow, nothing that was appended before or after is lost', async () => {
    const bytes = fc.uint8Array({ maxLength: 200 });
    const text = fc.array(fc.oneof(fc.json(), fc.string(), fc.constant('null'))).map((all) => all.join('\n'));
    const garbage = fc.oneof(bytes, text, fc.constant(Buffer.alloc(5_000)));
    await fc.assert(
      fc.asyncProperty(anyLines, garbage, async (before, noise) => {
        const path = freshPath();
        await (await open(path)).journal.append(before);
        await appendFile(path, noise);
        const opened = await open(path);
        assert.deepEqual(opened.lines.slice(0, before.length), before);
        await opened.journal.append(lines(100, 102));
        const after = await read(path);
        assert.deepEqual(after.slice(0, opened.lines.length), opened.lines);
        assert.deepEqual(after.slice(opened.lines.length), lines(100, 102));
      }),
      RUNS,
    );
  });

  test('goes on after a write that failed', async () => {
    const path = freshPath();
    const { journal } = await open(path);
    await mkdir(path);
    await assert.rejects(journal.append(lines(0, 1)), { code: 'EISDIR' });
    await rm(path, { recursive: true });
    await journal.append(lines(1, 2));
    assert.deepEqual(await read(path), lines(1, 2));
  });

  test('bytes that are no UTF-8 and lines that are too long say nothing', async () => {
    const path = freshPath();
    const long = JSON.stringify({ n: 1, text: 'y'.repeat(300_000) });
    const bad = Buffer.concat([Buffer.from('{"n":2,"text":"'), Buffer.from([0xff]), Buffer.from('"}\n')]);
    await writeFile(path, Buffer.concat([Buffer.from(`${long}\n`), bad]));
    const { journal, lines: found } = await open(path, { lineBytesMax: 1_000 });
    assert.deepEqual(found, []);
    await assert.rejects(journal.append(lines(0, 1, 'z'.repeat(1_000))), { code: 'INTERNAL' });
    await journal.append(lines(0, 1));
    assert.deepEqual((await open(path, { lineBytesMax: 1_000 })).lines, lines(0, 1));
  });
});

describe('compaction', () => {
  test('keeps a file at the size of what counts', async () => {
    const path = freshPath();
    let live: Line[] = [];
    const { journal } = await open(path, { live: () => live, compactBytes: 10_000 });
    let sizeMax = 0;
    for (let n = 0; n < 300; n++) {
      live = [...live, ...lines(n, n + 1, 'x'.repeat(100))].slice(-20);
      await journal.append(live.slice(-1));
      sizeMax = Math.max(sizeMax, (await stat(path)).size);
    }
    await journal.compact();
    assert.ok(sizeMax > 5_000 && sizeMax <= 10_200, `${sizeMax} bytes`);
    assert.deepEqual(await read(path), live);
  });

  test('loses nothing that is appended while it goes on', async () => {
    const path = freshPath();
    const kept: Line[] = [];
    const { journal } = await open(path, { live: () => [...kept], compactBytes: 200 });
    const append = async (line: Line) => {
      kept.push(line);
      await journal.append([line]);
    };
    await Promise.all([...lines(0, 100).map(append), journal.compact(), ...lines(100, 200).map(append)]);
    const found = new Set((await read(path)).map(({ n }) => n));
    assert.deepEqual(
      [...found].sort((a, b) => a - b),
      lines(0, 200).map(({ n }) => n),
    );
  });

  test('one that fails loses nothing and fails no append; asked for, it says so', async () => {
    const path = freshPath();
    const live = async () => {
      throw new Error('cannot tell');
    };
    const { journal } = await open(path, { live, compactBytes: 100 });
    for (const line of lines(0, 20)) await journal.append([line]);
    await assert.rejects(journal.compact(), /cannot tell/);
    assert.deepEqual(await read(path), lines(0, 20));
  });

  test('without a word on what counts everything does', async () => {
    const path = freshPath();
    const { journal } = await open(path, { compactBytes: 10 });
    for (const line of lines(0, 20)) await journal.append([line]);
    await journal.compact();
    assert.deepEqual(await read(path), lines(0, 20));
  });
});
