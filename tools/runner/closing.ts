import { lastWordsOf } from '@skerry/kit/testing/heard';
import type { FileOutcome } from './file.ts';

/** Which errors the closing lines of a run tell again: whoever sees those lines alone, as of a run elsewhere, is to know why. */

export interface FileErrors {
  /** The file, or those that share its process. */
  readonly file: string;
  /** What its tests said, after why suites failed: tests say only that they were cancelled then. */
  readonly errors: readonly string[];
  /** Whether the first says why a suite failed. */
  readonly hasReason: boolean;
}

/** Of so many files the first error is told, as far as this. */
const FILES_TOLD_MAX = 8;
const LINES_TOLD_MAX = 20;
/** Of so many it is said how many more they have. */
const FILES_NAMED_MAX = 20;

/**
 * What is told of a file. One may fail without an error of any test, as when it is ended: then it is the last that it and its processes
 * printed. Pure.
 */
export function errorsOf({
  failed,
  errors,
  output,
}: Pick<FileOutcome, 'failed' | 'errors' | 'output'>): readonly string[] {
  const words = lastWordsOf(output);
  return errors.length > 0 || failed.length === 0 || words === '' ? errors : [`its last words:\n${words}`];
}

const firstLinesOf = (text: string) => text.split('\n').slice(0, LINES_TOLD_MAX).join('\n');

/** The first error of each file, reasons of suites before others, and then how many more there are, and where. Pure. */
export function tellErrors(files: readonly FileErrors[]): string[] {
  const failed = files
    .filter(({ errors }) => errors.length > 0)
    .sort((one, other) => Number(other.hasReason) - Number(one.hasReason));
  const told = failed
    .slice(0, FILES_TOLD_MAX)
    .map(({ file, errors }) => `${file}:\n${firstLinesOf(errors[0]!)}`);
  const others = failed
    .map(({ file, errors }, at) => ({ file, count: errors.length - (at < FILES_TOLD_MAX ? 1 : 0) }))
    .filter(({ count }) => count > 0);
  if (others.length === 0) return told;
  const named = others.slice(0, FILES_NAMED_MAX).map(({ file, count }) => `${file} (${count})`);
  const unnamed = others.length - named.length;
  const where = unnamed > 0 ? [...named, `${unnamed} more files`] : named;
  const count = others.reduce((sum, one) => sum + one.count, 0);
  return [...told, `Errors that are told above only: ${count}, in ${where.join(', ')}`];
}
