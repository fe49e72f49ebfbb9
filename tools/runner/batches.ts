import { readFileSync } from 'node:fs';
import { ROOT } from '../source.ts';

/**
 * Half of what most files take is their process's start: the same modules, loaded and compiled once more. Those of one package
 * share a process, one after another, unless they touch what belongs to the process.
 */
const FILES_MAX = 12;

/** What a file with one of these changes, asks or waits for could be another's of the same process. */
const OWN_PROCESS = [
  /\bprocess\.(?!execPath|geteuid|platform|arch)/,
  /\b(?:mock|globalThis|performance|gc)\b/,
  // At the top of a file: they would be for the tests of all files.
  /^(?:before|after)(?:Each)?\(/m,
  // The same, out of sight of the file.
  /\bsimulate|\w+Suite\(|\bstartPerson\(/,
  /node:(?:worker_threads|async_hooks|diagnostics_channel)\b/,
];

export const packageOf = (path: string) => path.split('/').slice(0, 2).join('/');

const isShareable = (text: string): boolean => !OWN_PROCESS.some((own) => own.test(text));

/** Files that run in one process, in the order in which they were given. */
export function batch(
  paths: readonly string[],
  read = (path: string) => readFileSync(`${ROOT}${path}`, 'utf8'),
): string[][] {
  const batches: string[][] = [];
  const open = new Map<string, string[]>();
  for (const path of paths) {
    const key = packageOf(path);
    const others = open.get(key);
    const isAlone = !isShareable(read(path));
    if (!isAlone && others !== undefined && others.length < FILES_MAX) {
      others.push(path);
      continue;
    }
    const made = [path];
    batches.push(made);
    if (!isAlone) open.set(key, made);
  }
  return batches;
}
