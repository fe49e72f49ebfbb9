import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { createProgram } from '../../apps/cli/src/program.ts';
import { DAEMONS } from '../daemons.ts';
import { listManualPages, writeForShells } from './pages.ts';

type Command = ReturnType<typeof createProgram>;

const { stdin, stdout, stderr } = process;
const program = createProgram({ environment: {}, stdin, stdout, stderr }, () => {});
const pages = new Map(listManualPages().map(({ file, text }) => [file, text]));

const listNames = (command: Command, parent = ''): string[] => {
  const name = `${parent}${command.name()}`;
  const children = command.commands.filter((child) => child.name() !== 'help');
  return [name, ...children.flatMap((child) => listNames(child, `${name}-`))];
};

test('every command has a manual page with what it is for, and every group names its commands', () => {
  const hidden = ['skerry-completion-values.1'];
  const expected = listNames(program)
    .map((name) => `${name}.1`)
    .filter((file) => !hidden.includes(file));
  assert.deepEqual([...pages.keys()].toSorted(), expected.toSorted());
  for (const [file, text] of pages) {
    assert.ok(text.startsWith('.TH "SKERRY'), file);
    assert.match(text, /^\.SH "NAME"\nskerry\S* \\- \S/m, file);
    assert.match(text, /^\.SH "SYNOPSIS"$/m, file);
  }
  assert.ok(pages.get('skerry-instance.1')!.includes('\n\\fBcreate\\fP\ncreate and start'));
  assert.ok(pages.get('skerry-instance-create.1')!.includes('\n\\fB\\-\\-name <name>\\fP\n'));
  assert.ok(pages.get('skerry-instance-create.1')!.includes('\n.SH "EXAMPLES"\n'));
});

test('the page of every daemon lists its settings', () => {
  for (const { name, config } of DAEMONS) {
    const lines = pages.get(name === 'status' ? 'skerry-status-serve.1' : `skerry-${name}.1`)!.split('\n');
    const listed = lines.filter((line) => line.startsWith(`\\fB${config.prefix}_`));
    assert.equal(listed.length, Object.keys(config.settings).length, name);
  }
});

const hasGroff = !spawnSync('groff', ['--version']).error;

test('groff takes every page without a warning', {
  skip: hasGroff ? false : 'groff is not installed',
}, () => {
  const input = [...pages.values()].join('');
  const ran = spawnSync('groff', ['-man', '-Tutf8', '-ww', '-rLL=1000n', '-z'], { input, encoding: 'utf8' });
  assert.deepEqual([ran.status, ran.stderr], [0, '']);
});

test('a package has them where Debian looks for them, the same bytes each time', () => {
  const root = mkdtempSync(join(tmpdir(), 'skerry-manual-'));
  try {
    writeForShells(root);
    const page = join(root, 'usr/share/man/man1/skerry-up.1.gz');
    const first = readFileSync(page);
    assert.equal(gunzipSync(first).toString(), pages.get('skerry-up.1'));
    assert.equal(globSync('usr/share/man/man1/*.gz', { cwd: root }).length, pages.size);
    for (const path of ['bash-completion/completions/skerry', 'zsh/vendor-completions/_skerry'])
      assert.ok(existsSync(join(root, 'usr/share', path)), path);
    writeForShells(root);
    assert.deepEqual(readFileSync(page), first);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
});
