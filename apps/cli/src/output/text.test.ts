import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as text from './text.ts';

test('columns are aligned by what is seen, without trailing spaces', () => {
  const rows = [
    ['web', '\u001b[32mrunning\u001b[39m', 'a'],
    ['database', 'up', ''],
  ];
  assert.equal(
    text.renderTable(['NAME', 'PHASE', 'X'], rows),
    'NAME      PHASE    X\nweb       \u001b[32mrunning\u001b[39m  a\ndatabase  up',
  );
  assert.equal(text.renderTable(['NAME'], []), '');
});

test('fields leave out what is not there', () => {
  assert.equal(
    text.renderFields([
      ['a', 1],
      ['b', undefined],
      ['c', ''],
    ]),
    'a: 1\nc:',
  );
});

test('amounts in the words of people', () => {
  assert.equal(text.renderBytes(0), '0 B');
  assert.equal(text.renderBytes(1023), '1023 B');
  assert.equal(text.renderBytes(1536), '1.5 KiB');
  assert.equal(text.renderBytes(3 * 1024 ** 4), '3.0 TiB');
  assert.equal(text.renderAge(59), 'just now');
  assert.equal(text.renderAge(60), '1 minute ago');
  assert.equal(text.renderAge(7_200), '2 hours ago');
  assert.equal(text.renderAge(-5), 'just now');
  assert.equal(text.renderDuration(12_400), '12 s');
  assert.equal(text.renderDuration(200_000), '3 min 20 s');
  assert.match(text.renderTime(0), /^19(69|70)-\d\d-\d\d \d\d:\d\d:00$/);
});

test("a console's colours stay on a terminal, and nothing else that steers it", () => {
  const line = '[\u001b[0;32m  OK  \u001b[0m] a\u001b[2J\u001b[Kb\u001b]0;title\u0007c\r';
  assert.equal(text.consoleLine(line, true), '[\u001b[0;32m  OK  \u001b[0m] abc ');
  assert.equal(text.consoleLine(line, false), '[  OK  ] abc ');
});

test('text of strangers cannot steer a terminal, nor read in another order than it has', () => {
  assert.equal(text.plainText('a\u001b[2Jb\r\nc\u009b'), 'a [2Jb c ');
  assert.equal(text.plainText('yes\u202eon\u2069'), 'yes on ');
});

test('no colour hides what is said behind it, nor goes on into the next line', () => {
  const hiding = 'safe()\u001b[8m; steal()\u001b[28m\u001b[30;40m; end()';
  assert.equal(text.terminalText(hiding, true), 'safe(); steal(); end()');
  for (const code of ['8', '0;8', ';8', '008', '38;5;1;8', '8;38;5;1', '38;2;1;2;3;8'])
    assert.equal(text.consoleLine(`a\u001b[${code}mb`, true), 'ab', code);
  for (const code of ['31', '1;32', '38;5;8', '48;2;8;8;8', '97;1'])
    assert.equal(text.consoleLine(`\u001b[${code}ma`, true), `\u001b[${code}ma\u001b[0m`, code);
  assert.equal(text.terminalText('\u001b[32mup\nnext', true), '\u001b[32mup\u001b[0m\nnext');
  assert.equal(text.consoleText('\u001b[35ma\u001b[m\nb', true), '\u001b[35ma\u001b[m\nb');
});

test('JSON that is printed on a terminal is the same value, and steers nothing', () => {
  const value = { a: ['\u009b2J\u007f\u202e\u001b[2J\n'], b: 1 };
  for (const indent of [undefined, 2]) {
    const json = text.jsonText(value, indent);
    assert.deepEqual(JSON.parse(json), value);
    assert.doesNotMatch(json, /[^\P{Cc}\n]|\u202e/u);
  }
});

const HASH = 'ab'.repeat(32);

test('a table that is too wide shortens its sentences, and never what one copies', () => {
  const head = ['ID', 'WHY'];
  const rows = [[HASH, 'no node has enough memory for this instance now']];
  assert.equal(text.renderTable(head, rows, 200), text.renderTable(head, rows));
  const narrow = text.renderTable(head, rows, 90);
  assert.ok(narrow.split('\n').every((line) => line.length <= 90));
  assert.match(narrow, new RegExp(`^${HASH}  no node has enough mem.*…$`, 'm'));
});

test('where that is not enough, each row becomes lines of its own', () => {
  assert.equal(
    text.renderTable(
      ['HASH', 'NAME'],
      [
        [HASH, 'web'],
        [HASH, ''],
      ],
      40,
    ),
    `HASH  ${HASH}\nNAME  web\n\nHASH  ${HASH}`,
  );
});
