import { readFileSync } from 'node:fs';
import { ROOT } from '../source.ts';

/**
 * Half of what most files take is their process's start: the same modules, loaded and compiled once more. Those of one package
 * share processes, one after another, unless they touch what belongs to the process.
 */
const FILES_MAX = 32;

/** What a file with one of these in its code changes, asks or waits for could be another's of the same process. */
const OWN_PROCESS = [
  // Reading these is harmless; `process.ts` is a module's name.
  /\bprocess\.(?!execPath|geteuid|platform|arch|pid|kill|cwd|env\b|ts\b)/,
  /\bprocess\.env(?:\.\w+|\[[^\]]*\])?\s*(?:\?\?|\|\||&&)?=(?!=)|(?:\bdelete |\bassign\()process\.env\b/,
  // What they do to the process is out of sight of the file.
  /\bsimulate\w*\(|\w+Suite\(|\bstartPerson\(/,
];
/** The same, also in a string. A test's own `t.mock` ends with it. */
const OWN_NAMES =
  /(?<!\.)\bmock\b|\b(?:globalThis|performance(?!\.now\b)|gc)\b|node:(?:worker_threads|async_hooks|diagnostics_channel)\b/;
/** What others do: the program of a child, a path of an API. */
const STRING = /'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"/g;

/** Whose modules a file is likely to need: its workspace, or the tools. */
export const packageOf = (path: string) =>
  /^tools\//.test(path) ? 'tools' : path.split('/').slice(0, 2).join('/');

function isShareable(text: string): boolean {
  const code = text.replaceAll(STRING, "''");
  return !OWN_NAMES.test(text) && !OWN_PROCESS.some((own) => own.test(code));
}

/** Dealt like cards: where the heaviest come first, each hand has as many of them. */
const deal = (paths: readonly string[]): string[][] => {
  const hands = Math.ceil(paths.length / FILES_MAX);
  return Array.from({ length: hands }, (_, hand) => paths.filter((_, index) => index % hands === hand));
};

/** Files that run in one process each; what was given first is in the first ones, and comes first in them. */
export function batch(
  paths: readonly string[],
  read = (path: string) => readFileSync(`${ROOT}${path}`, 'utf8'),
): string[][] {
  const keyOf = new Map(paths.map((path) => [path, isShareable(read(path)) ? packageOf(path) : path]));
  return [...Map.groupBy(paths, (path) => keyOf.get(path)!).values()].flatMap(deal);
}
