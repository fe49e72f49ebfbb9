import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { compareFigures } from '../bench/against.ts';
import { BENCHES, listRuns } from '../bench/benches.ts';
import { readCommand, WrongUse } from '../bench/command.ts';
import { Figures } from '../bench/measure/figures.ts';
import { reaches } from '../bench/measure/text.ts';
import { waitForQuiet } from '../bench/quiet.ts';
import { fillTables } from '../bench/report/page.ts';
import { keyOf, PAGE_FILE, type Run, readRuns, writeRun } from '../bench/report/record.ts';
import { ROOT } from './source.ts';

/** What makes figures of benches comparable and tables of figures. Takes 1 CPU s, most of it for one run of the command. */

function record(add: (figures: Figures) => void) {
  const lines: string[] = [];
  const figures = new Figures((line) => lines.push(line));
  figures.group('files');
  add(figures);
  return { rows: figures.rows, lines };
}

const runOf = (add: (figures: Figures) => void): Run => ({
  date: '2026-11-23T10:00:00Z',
  commit: 'abcdef1234',
  isClean: true,
  machine: '2 processors',
  load: 0.1,
  busy: 0.02,
  seconds: 61,
  figures: record(add).rows,
});

describe('figures of benches', () => {
  test('a figure has its spread, its ratio within each round and its goal, in the line and in the row', () => {
    const { rows, lines } = record((figures) => {
      const ratio = { to: 'bare', values: [0.5, 0.6, 0.7] };
      figures.add('upload', 'MiB/s', [300, 100, 200], { ratio, goal: { of: 'ratio', least: 0.8 } });
    });
    assert.deepEqual(rows, [
      {
        ...{ group: 'files', what: 'upload', unit: 'MiB/s' },
        ...{ median: 200, lowest: 100, highest: 300, rounds: 3 },
        ratio: { to: 'bare', median: 0.6, lowest: 0.5, highest: 0.7 },
        goal: { of: 'ratio', least: 0.8 },
      },
    ]);
    assert.equal(
      lines[1]?.replace(/ {2,}/g, ' '),
      ' upload 200 MiB/s (100 to 300); 0.60 (0.50 to 0.70) of "bare"; goal: ratio at least 0.80: missed',
    );
    assert.equal(reaches(rows[0]!), false);
    assert.equal(reaches({ ...rows[0]!, goal: { of: 'median', most: 200 } }), true);
  });

  test('requests have quantiles', () => {
    const times = Array.from({ length: 100 }, (_, n) => n + 1);
    const { rows } = record((figures) =>
      figures.addTimes('a page', times, { goal: { of: 'p99', most: 99 } }),
    );
    assert.deepEqual([rows[0]?.p95, rows[0]?.p99, rows[0]?.rounds], [96, 100, 100]);
    assert.equal(reaches(rows[0]!), false);
  });

  test('no figure without a value, and no two of one name', () => {
    assert.throws(() => record((figures) => figures.add('none', 's', [])), /no figures/);
    assert.throws(() => record((figures) => figures.add('none', 's', 0 / 0)), /no figures/);
    const twice = (figures: Figures) => ['a', 'a'].forEach((what) => void figures.add(what, 's', 1));
    assert.throws(() => record(twice), /two figures/);
  });

  test('two commits are compared by pairs of runs, and by their ratios to a limit', () => {
    const rowsOf = (rate: number, ratio: number) =>
      record((figures) => {
        figures.add('ingest', '/s', rate, { ratio: { to: 'limit', values: [ratio] } });
        figures.add(`only of ${rate}`, '/s', rate);
      }).rows;
    const pairs = [
      { here: rowsOf(200, 0.5), there: rowsOf(100, 0.25) },
      { here: rowsOf(330, 0.4), there: rowsOf(110, 0.2) },
    ];
    const compared = compareFigures(pairs);
    assert.deepEqual(
      compared.map(({ what }) => what),
      ['ingest'],
    );
    assert.deepEqual(compared[0]?.ratio, { median: 2.5, lowest: 2, highest: 3 });
    assert.deepEqual(compared[0]?.ratioOfRatios, { median: 2, lowest: 2, highest: 2 });
  });
});

describe('the page of figures', () => {
  const runs = {
    score: runOf((figures) => figures.add('a | b', 's', [1, 2, 3], { goal: { of: 'median', most: 5 } })),
  };

  test('what is between marks is made of the run, what is around them stays', () => {
    const page = 'Before.\n\n<!-- figures: score -->\nold\n<!-- /figures -->\n\nAfter.\n';
    const filled = fillTables(page, runs);
    assert.match(
      filled,
      /^Before\.\n\n<!-- figures: score -->\n\nMeasured 2026-11-23, commit `abcdef1234`, in 2 min/,
    );
    assert.match(
      filled,
      /\| files \| figure \| goal \|\n\|---\|---\|---\|\n\| a \\\| b \| 2 s \(1 to 3\) \| at most 5 s: reached \|/,
    );
    assert.match(filled, /<!-- \/figures -->\n\nAfter\.\n$/);
    assert.doesNotMatch(filled, /old/);
    assert.equal(fillTables(filled, runs), filled);
  });

  test('a run that lacks a peer does not take the place of one that has it', () => {
    const before = readRuns();
    assert.throws(() => writeRun('score', runs.score, ['nginx']), /score: not kept, .*: nginx/);
    assert.deepEqual(readRuns(), before);
  });

  test('what stands between marks stays while there is no run', () => {
    const page = '<!-- figures: storage 32 -->\n\n| older |\n\n<!-- /figures -->';
    assert.equal(fillTables(page, runs), page);
  });

  test('every goal stands in one table, with what it is compared with, and of which run it is', () => {
    const own = {
      ingest: runOf((figures) => {
        const ratio = { to: 'bare', values: [0.5, 0.6, 0.7] };
        figures.add('rate', '/s', 200, { ratio, goal: { of: 'ratio', least: 0.8 } });
        figures.add('without a goal', '/s', 3);
        figures.addTimes('a page', [1, 2, 3], { goal: { of: 'p95', most: 20 } });
      }),
    };
    const page = fillTables('<!-- goals -->\nold\n<!-- /goals -->\n', own);
    assert.deepEqual(
      page.split('\n').filter((line) => line.startsWith('| ingest')),
      [
        '| ingest | files: rate | ratio at least 0.80 | 0.60 (0.50 to 0.70) | missed | 2026-11-23, `abcdef1234` |',
        '| ingest | files: a page | p95 at most 20 ms | 3 ms | reached | 2026-11-23, `abcdef1234` |',
      ],
    );
    assert.equal(fillTables(page, own), page);
  });

  test('every bench and every run that is kept has its place', () => {
    const page = readFileSync(join(ROOT, PAGE_FILE), 'utf8');
    const marks = [...page.matchAll(/<!-- figures: (.+?) -->/g)].map(([, key]) => key!);
    const benchOf = (key: string) => key.split(' ', 1)[0]!;
    assert.deepEqual([...new Set(marks.map(benchOf))].sort(), Object.keys(BENCHES).sort());
    const keys = [...Object.keys(readRuns()), ...listRuns().map(({ name, args }) => keyOf(name, args))];
    assert.deepEqual(
      keys.filter((key) => !marks.includes(key)),
      [],
    );
  });
});

describe('npm run bench', () => {
  test('options of the command may stand anywhere; the rest goes to the bench', () => {
    const command = readCommand([
      '--json',
      'query',
      '--messages',
      '5',
      '--against',
      'HEAD~1',
      '--pairs=3',
      'x',
    ]);
    assert.deepEqual(command.args, ['--messages', '5', 'x']);
    assert.deepEqual(
      [command.name, command.json, command.against, command.pairs],
      ['query', true, 'HEAD~1', 3],
    );
    for (const wrong of [
      ['x', '--pairs', '0'],
      ['x', '--against', 'HEAD', '--write'],
      ['all', '--against', 'HEAD'],
      ['--write'],
    ])
      assert.throws(() => readCommand(wrong), WrongUse);
  });

  test('what a run is kept under tells no password', () => {
    const url = 'postgres://me:secret@host/db';
    assert.equal(
      keyOf('query', ['--database-url', url, '--messages', '5']),
      'query --database-url URL --messages 5',
    );
    assert.equal(keyOf('query', [`--database-url=${url}`]), 'query --database-url=URL');
  });

  test('a machine is quiet when it was three times in a row; one that never is stops the wait', async () => {
    const busy = [0.9, 0.05, 0.05, 0.8, 0.05, 0.04, 0.03];
    assert.equal(await waitForQuiet(async () => busy.shift()!, 60_000), 0.03);
    assert.equal(await waitForQuiet(async () => 0.9, 0), undefined);
  });

  test('the list is JSON only where it is asked for; a wrong name says which there are', () => {
    const run = (...args: string[]) =>
      spawnSync(process.execPath, [join(ROOT, 'bench/main.ts'), ...args], { encoding: 'utf8' });
    const listed = JSON.parse(run('--json').stdout) as { name: string; minutes: number }[];
    assert.ok(listed.some(({ name, minutes }) => name === 'verify' && minutes > 0));
    const wrong = run('nothing');
    assert.equal(wrong.status, 2);
    assert.match(wrong.stderr, /there are verify, /);
  });
});
