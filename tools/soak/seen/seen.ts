import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../../source.ts';

/** Where it is kept which soaks were seen passing, for whoever wonders how long ago one ran. */
export const SEEN_FILE = 'tools/soak/seen/seen.json';
const COMMIT_DIGITS = 10;

/** The last time that somebody saw a soak pass, and kept it. */
export interface Pass {
  /** UTC, `YYYY-MM-DD`. */
  readonly date: string;
  readonly commit: string;
  readonly seconds: number;
}

/** By the name or file of the soak. */
export type Seen = Readonly<Record<string, Pass>>;

/** How a soak ended that ran. In part: the machine or the user could not do some of it, or it was told to be shorter. */
export interface Outcome {
  readonly name: string;
  readonly seconds: number;
  readonly result: 'passed' | 'passed in part' | 'failed';
}

/** What is known once these ran: one that did not pass keeps its last pass. Of names that are no soak any more, nothing. */
export function seenAfter(
  before: Seen,
  outcomes: readonly Outcome[],
  about: Pick<Pass, 'date' | 'commit'>,
  names: readonly string[],
): Seen {
  const passed = outcomes
    .filter(({ result }) => result === 'passed')
    .map(({ name, seconds }) => [name, { ...about, seconds: Math.round(seconds) }] as const);
  const all: Seen = { ...before, ...Object.fromEntries(passed) };
  return Object.fromEntries(names.flatMap((name) => (all[name] ? [[name, all[name]]] : [])));
}

/** One line for each that ran. */
export function tellOutcomes(outcomes: readonly Outcome[]): string {
  const lines = outcomes.map(({ name, seconds, result }) => `  ${result} ${name} (${Math.round(seconds)} s)`);
  const failed = outcomes.filter(({ result }) => result === 'failed').length;
  return `${outcomes.length} ran, ${failed} failed:\n${lines.join('\n')}`;
}

export function readSeen(): Seen {
  const path = join(ROOT, SEEN_FILE);
  return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as Seen) : {};
}

/** Keeps which of these passed, today and of this commit. @throws Error outside a checkout */
export function writeSeen(outcomes: readonly Outcome[], names: readonly string[]): void {
  const commit = execFileSync('git', ['rev-parse', `--short=${COMMIT_DIGITS}`, 'HEAD'], {
    cwd: ROOT,
    encoding: 'utf8',
  }).trim();
  const about = { date: new Date().toISOString().slice(0, 10), commit };
  const seen = seenAfter(readSeen(), outcomes, about, names);
  writeFileSync(join(ROOT, SEEN_FILE), `${JSON.stringify(seen, null, 2)}\n`);
}
