import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus, loadavg, totalmem } from 'node:os';
import { join } from 'node:path';
import { layOut } from '../../tools/lay-out.ts';
import { ROOT } from '../../tools/source.ts';
import type { Figure } from '../measure/figure.ts';
import { BenchError } from '../run.ts';

/** A run of a bench: when, of which code, on what, and what it found. */
export interface Run {
  /** When it began, ISO 8601. */
  readonly date: string;
  readonly commit: string;
  /** Whether the code was that of the commit. */
  readonly isClean: boolean;
  readonly machine: string;
  /** Processes ready to work in the minute before it. */
  readonly load: number;
  /** Part of all processors that others used just before it, 0 to 1. */
  readonly busy: number;
  readonly seconds: number;
  readonly figures: readonly Figure[];
}

/** Runs by what stands behind `npm run bench --`. */
export type Runs = Readonly<Record<string, Run>>;

export const FIGURES_FILE = 'bench/figures.json';
export const PAGE_FILE = 'docs/performance.md';
const GIB = 1024 ** 3;

const git = (...args: string[]) => execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' }).trim();

/** What a run is of, as it begins. */
export function describeRun(busy: number): Omit<Run, 'seconds' | 'figures'> {
  // What is written here is made by benches: it changes nothing that they measure.
  const written = [`:!${FIGURES_FILE}`, `:!${PAGE_FILE}`];
  const changes = git('status', '--porcelain', '--untracked-files=no', '--', '.', ...written);
  const memory = Math.round(totalmem() / GIB);
  return {
    date: `${new Date().toISOString().slice(0, 19)}Z`,
    commit: git('rev-parse', '--short=10', 'HEAD'),
    isClean: changes === '',
    machine: `${availableParallelism()} processors (${cpus()[0]?.model.trim() ?? process.arch}), ${memory} GiB, Node ${process.versions.node}`,
    load: Number(loadavg()[0]!.toFixed(2)),
    busy: Number(busy.toFixed(2)),
  };
}

/** What a run is kept under. A password is none of it: the value of `--database-url` is left out. */
export const keyOf = (name: string, args: readonly string[]): string =>
  [name, ...args]
    .map((one, index, all) => (all[index - 1] === '--database-url' ? 'URL' : one))
    .map((one) => one.replace(/^--database-url=.*/, '--database-url=URL'))
    .join(' ');

export function readRuns(): Runs {
  const path = join(ROOT, FIGURES_FILE);
  return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as Runs) : {};
}

/**
 * Keeps a run in the place of the one before; the others stay.
 * @param lacking what it could not measure: figures of a machine that has less would take the place of more
 * @throws BenchError where anything lacks
 */
export function writeRun(key: string, run: Run, lacking: readonly string[]): void {
  if (lacking.length > 0)
    throw new BenchError(`${key}: not kept, since these are not here: ${lacking.join(', ')}`);
  const runs = Object.entries({ ...readRuns(), [key]: run }).sort(([one], [other]) => (one < other ? -1 : 1));
  writeFileSync(join(ROOT, FIGURES_FILE), `${layOut(Object.fromEntries(runs))}\n`);
}
