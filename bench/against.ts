import { execFileSync, spawnSync } from 'node:child_process';
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { ROOT } from '../tools/source.ts';
import { WrongUse } from './command.ts';
import type { Figure, Spread } from './measure/figure.ts';
import { spreadOf, tell } from './measure/figures.ts';
import { formatNumber, formatRange, formatValue } from './measure/text.ts';
import { BenchError, runBenchOf } from './run.ts';

/** A commit that has this file can say its figures. */
const MARK = 'bench/measure/figures.ts';
const git = (...args: string[]) => spawnSync('git', args, { cwd: ROOT, encoding: 'utf8' });

/**
 * @returns the hash of a commit whose benches can be compared
 * @throws WrongUse
 */
export function resolveCommit(name: string): string {
  const { status, stdout } = git('rev-parse', '--verify', '--quiet', '--end-of-options', `${name}^{commit}`);
  if (status !== 0) throw new WrongUse(`${name} is no commit of this repository`);
  const commit = stdout.trim();
  if (git('cat-file', '-e', `${commit}:${MARK}`).status === 0) return commit;
  const [first = ''] = git('log', '--reverse', '--diff-filter=A', '--format=%h %s', '--', MARK).stdout.split(
    '\n',
  );
  throw new WrongUse(
    `${name} is too old: its benches give no figures that can be compared. The first commit that does is ${first}`,
  );
}

/** Files of `node_modules`, shared with the other checkout where both need the same ones. */
function installPackages(directory: string): void {
  const lockfile = (root: string) => readFileSync(join(root, 'package-lock.json'), 'utf8');
  if (lockfile(directory) !== lockfile(ROOT)) {
    tell('installing the packages of that commit');
    execFileSync('npm', ['ci', '--no-audit', '--no-fund'], { cwd: directory, stdio: ['ignore', 2, 2] });
    return;
  }
  for (const path of [
    'node_modules',
    ...globSync('{packages,services,apps}/*/node_modules', { cwd: ROOT }),
  ]) {
    const to = join(directory, path);
    // Hard links where the temporary folder is on the same file system.
    if (spawnSync('cp', ['-al', join(ROOT, path), to], { stdio: 'ignore' }).status === 0) continue;
    rmSync(to, { recursive: true, force: true });
    execFileSync('cp', ['-a', join(ROOT, path), dirname(to)], { stdio: ['ignore', 2, 2] });
  }
  // What tests compiled there is of the other code; what is bundled there is of the packages.
  rmSync(join(directory, 'node_modules/.cache/skerry'), { recursive: true, force: true });
}

/** A checkout of a commit in a temporary folder, taken away when this process ends. */
function checkOut(commit: string): string {
  const directory = mkdtempSync(join(tmpdir(), 'skerry-bench-against-'));
  process.once('exit', () => {
    git('worktree', 'remove', '--force', directory);
    rmSync(directory, { recursive: true, force: true });
    git('worktree', 'prune');
  });
  const { status, stderr } = git('worktree', 'add', '--detach', '--quiet', directory, commit);
  if (status !== 0) throw new BenchError(`${commit} could not be checked out: ${stderr.trim()}`);
  installPackages(directory);
  return directory;
}

/** What `--json` of some commit printed. */
function parseFigures(text: string): Figure[] {
  try {
    const { figures } = JSON.parse(text) as { figures?: Figure[] };
    if (Array.isArray(figures)) return figures;
  } catch {
    // It is said below.
  }
  throw new BenchError(`a bench printed no figures, but: ${text.slice(0, 200)}`);
}

/** A figure of both, and its ratio in each pair of runs. */
export interface Compared {
  readonly group: string;
  readonly what: string;
  readonly unit: string;
  readonly here: number;
  readonly there: number;
  /** Here to there. */
  readonly ratio: Spread;
  /** Of the figures' own ratios to a limit or a peer, which what disturbs the machine hardly touches. */
  readonly ratioOfRatios?: Spread;
}

interface Pair {
  readonly here: readonly Figure[];
  readonly there: readonly Figure[];
}

/** @param pairs of runs, at least one; figures that only one side has are left out */
export function compareFigures(pairs: readonly Pair[]): Compared[] {
  const find = (figures: readonly Figure[], { group, what }: Figure) =>
    figures.find((one) => one.group === group && one.what === what);
  return pairs[0]!.here.flatMap((figure) => {
    const both = pairs.flatMap(({ here, there }) => {
      const [own, other] = [find(here, figure), find(there, figure)];
      return own && other && other.median !== 0 ? [{ own, other }] : [];
    });
    if (both.length < pairs.length) return [];
    const ratios = both.flatMap(({ own, other }) =>
      own.ratio && other.ratio ? [own.ratio.median / other.ratio.median] : [],
    );
    return {
      group: figure.group,
      what: figure.what,
      unit: figure.unit,
      here: spreadOf(both.map(({ own }) => own.median)).median,
      there: spreadOf(both.map(({ other }) => other.median)).median,
      ratio: spreadOf(both.map(({ own, other }) => own.median / other.median)),
      ...(ratios.length === both.length && { ratioOfRatios: spreadOf(ratios) }),
    };
  });
}

export function describeCompared({ what, unit, here, there, ratio, ratioOfRatios }: Compared): string {
  const withRange = (spread: Spread) => `${formatNumber(spread.median)} (${formatRange(spread)})`;
  const own = ratioOfRatios ? `; of their ratios ${withRange(ratioOfRatios)}` : '';
  return `  ${what.padEnd(60)} ${formatValue(here, unit)} to ${formatValue(there, unit)}: ${withRange(ratio)}${own}`;
}

interface Options {
  readonly args: readonly string[];
  readonly commit: string;
  readonly pairs: number;
  readonly limitMinutes: number;
}

/**
 * Runs a bench here and of another commit in turns: here, there, there, here and so on, so that a machine that becomes
 * slower or faster favours neither.
 * @throws BenchError
 */
export async function runAgainst(name: string, { args, commit, pairs, limitMinutes }: Options) {
  const checkout = checkOut(commit);
  const run = async (root: string) => parseFigures(await runBenchOf(root, name, { args, limitMinutes }));
  const found: Pair[] = [];
  for (let pair = 0; pair < pairs; pair++) {
    tell(`\npair ${pair + 1} of ${pairs}`);
    const early = pair % 2 === 0 ? await run(ROOT) : undefined;
    const there = await run(checkout);
    found.push({ here: early ?? (await run(ROOT)), there });
  }
  return compareFigures(found);
}
