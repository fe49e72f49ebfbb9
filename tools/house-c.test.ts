import assert from 'node:assert/strict';
import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, test } from 'node:test';
import { TLS_FIGURE_NAMES, TLS_OUTCOMES } from '../services/gateway/src/dataplane/figures.ts';
import { findCycles } from './cycles.ts';
import { ROOT } from './source.ts';

/**
 * The house rules of the native data plane. Each part is a .c file with a header of its own, and what one uses of another comes
 * by that header: so the graph of includes is the graph of calls.
 */

const FOLDER = 'services/gateway/native';
const MAX_LINES = 400;
const MAX_FUNCTION_LINES = 60;
const ENTRY = 'main';

interface CFile {
  readonly name: string;
  readonly part: string;
  readonly text: string;
}

const files: readonly CFile[] = readdirSync(join(ROOT, FOLDER))
  .filter((name) => /\.[ch]$/.test(name))
  .map((name) => ({
    name,
    part: name.slice(0, -2),
    text: withoutComments(readFileSync(join(ROOT, FOLDER, name), 'utf8')),
  }));
const sources = files.filter(({ name }) => name.endsWith('.c'));
const headers = files.filter(({ name }) => name.endsWith('.h'));
/** What the native plane alone can see: how much the kernel holds of a connection. */
const NATIVE_ALONE: readonly string[] = ['stalledBytes', 'stalled'];
const none = (problems: readonly string[]) => assert.deepEqual(problems, []);

function withoutComments(text: string): string {
  return text.replace(/\/\*.*?\*\//gs, (comment) => comment.replace(/.+/g, '')).replace(/ +$/gm, '');
}

const allOf = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map((match) => match[1]!);

const ownIncludes = ({ text }: CFile) => allOf(text, /^#include "(.+)\.h"$/gm);
/** Names that others may use: functions, and variables. What stands at the start of a line is at the top level. */
const declared = ({ text }: CFile) => [
  ...allOf(text, /^(?!typedef|static|extern|_Static)\w[^;{}()=#]*?(\w+)\([^;{]*\);$/gm),
  ...allOf(text, /^extern [^;]*?(\w+)(?:\[\w+\])?;$/gm),
];
const defined = ({ text }: CFile) => [
  ...allOf(text, /^(?!typedef|static|extern)\w[^;{}()=#]*?(\w+)\([^;{]*\) \{/gm),
  ...allOf(text, /^(?!typedef|static|extern|struct \w+;|enum)\w[^;{}()=]* \*?(\w+)(?:\[\w+\])?;$/gm),
];

function includeGraph(all: readonly CFile[]): Map<string, string[]> {
  const graph = new Map<string, string[]>();
  for (const file of all) {
    const others = ownIncludes(file).filter((part) => part !== file.part);
    graph.set(file.part, [...new Set([...(graph.get(file.part) ?? []), ...others])]);
  }
  return graph;
}

function longFunctions({ name, text }: CFile): string[] {
  const problems: string[] = [];
  let start = 0;
  for (const [index, line] of text.split('\n').entries()) {
    if (/^\w.*[^;]$/.test(line)) start = index;
    if (line === '}' && index - start >= MAX_FUNCTION_LINES) problems.push(`${name}:${start + 1}`);
  }
  return problems;
}

describe('house rules of the native data plane', () => {
  test('there is something to check', () => {
    assert.ok(sources.length > 15 && headers.length > 15);
    assert.ok(files.flatMap(defined).length > 40);
  });

  test('each source has a header of its own, and declares nothing of others', () => {
    const parts = new Set(headers.map(({ part }) => part));
    none(sources.filter(({ part }) => part !== ENTRY && !parts.has(part)).map(({ name }) => name));
    none(sources.flatMap((file) => declared(file).map((name) => `${file.name} declares ${name}`)));
  });

  test('what a header declares is defined in its source, and nothing else is for others', () => {
    const byPart = new Map(headers.map((file) => [file.part, declared(file)]));
    const definedIn = new Map(sources.map((file) => [file.part, defined(file)]));
    none(
      headers.flatMap((file) =>
        declared(file)
          .filter((name) => !definedIn.get(file.part)?.includes(name))
          .map((name) => `${file.name} declares ${name}`),
      ),
    );
    none(
      sources.flatMap((file) =>
        defined(file)
          .filter((name) => name !== ENTRY && !byPart.get(file.part)?.includes(name))
          .map((name) => `${file.name} defines ${name}, which is not static`),
      ),
    );
  });

  test('what C files of the tests include is there', () => {
    const paths = globSync('services/**/*.c', { cwd: ROOT, exclude: ['**/node_modules/**'] });
    assert.ok(paths.length > sources.length);
    none(
      paths.flatMap((path) =>
        allOf(readFileSync(join(ROOT, path), 'utf8'), /^#include "(.+)"$/gm)
          .filter((included) => !existsSync(join(ROOT, dirname(path), included)))
          .map((included) => `${path} includes ${included}`),
      ),
    );
  });

  test('both data planes count every figure and every outcome that they can see', () => {
    const snake = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    const native = sources.map(({ text }) => text).join('\n');
    const ours = globSync('services/gateway/src/dataplane/ts/**/*.ts', { cwd: ROOT })
      .map((path) => readFileSync(join(ROOT, path), 'utf8'))
      .join('\n');
    const has = (text: string, pattern: string) => new RegExp(pattern).test(text);
    none([
      ...TLS_FIGURE_NAMES.flatMap((name) => [
        ...(has(native, `stats->${snake(name)}\\b(?! = )`) ? [] : [`${FOLDER} does not count ${name}`]),
        ...(NATIVE_ALONE.includes(name) || has(ours, `figures\\.${name}\\b`)
          ? []
          : [`dataplane/ts does not count ${name}`]),
      ]),
      ...TLS_OUTCOMES.flatMap((name) => [
        ...(has(native, `\\b${name.toUpperCase()}\\b`) ? [] : [`${FOLDER} has no ${name}`]),
        ...(NATIVE_ALONE.includes(name) || has(ours, `'${name}'|outcomes\\.${name}\\b`)
          ? []
          : [`dataplane/ts has no ${name}`]),
      ]),
    ]);
  });

  test('no include cycles', () => none(findCycles(includeGraph(files))));

  test('no file and no function that is too long', () => {
    none(files.filter(({ text }) => text.split('\n').length > MAX_LINES).map(({ name }) => name));
    none(files.flatMap(longFunctions));
  });
});
