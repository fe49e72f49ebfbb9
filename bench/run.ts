import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Figure } from './measure/figure.ts';
import { listProcessesBelow } from './measure/processor-time.ts';

/** A bench has failed; it has said why. */
export class BenchError extends Error {}

/** Databases, chains and servers of a bench have process groups of their own: who ends the bench ends them, too. */
export function endBelow(root: number): void {
  for (const pid of listProcessesBelow([root])) {
    if (pid === process.pid) continue;
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It has ended meanwhile.
    }
  }
}

const MINUTE_MS = 60_000;

async function waitForEnd(child: ChildProcess, limitMinutes: number): Promise<string | undefined> {
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    endBelow(child.pid!);
  }, limitMinutes * MINUTE_MS);
  const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null];
  clearTimeout(timer);
  if (isLate) return `it was ended at its limit of ${limitMinutes} minutes`;
  return code === 0 ? undefined : `it ended with ${signal ?? code}`;
}

/** What a bench found, and what it could not measure on this machine. */
export interface Found {
  readonly figures: readonly Figure[];
  readonly lacking: readonly string[];
}

interface Options {
  readonly args: readonly string[];
  /** Where lines for people go: 1 or 2. */
  readonly output: 1 | 2;
  readonly limitMinutes: number;
}

/**
 * Runs a bench of this checkout.
 * @throws BenchError
 */
export async function runBench(name: string, { args, output, limitMinutes }: Options): Promise<Found> {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'child.ts'), name, ...args], {
    stdio: ['ignore', output, 2, 'ipc'],
  });
  let found: Found | undefined;
  child.once('message', (told) => {
    found = told as unknown as Found;
  });
  const trouble = await waitForEnd(child, limitMinutes);
  if (trouble !== undefined) throw new BenchError(`${name}: ${trouble}`);
  if (!found) throw new BenchError(`${name}: it gave no figures`);
  return found;
}

/**
 * Runs a bench of any checkout, whose `npm run bench -- NAME --json` gives figures.
 * @param says the text that this printed
 * @throws BenchError
 */
export async function runBenchOf(
  checkout: string,
  name: string,
  { args, limitMinutes }: Omit<Options, 'output'>,
): Promise<string> {
  const child = spawn(process.execPath, ['apps/cli/bin/node.js', 'bench/main.ts', name, ...args, '--json'], {
    cwd: checkout,
    stdio: ['ignore', 'pipe', 2],
  });
  let said = '';
  child.stdout!.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  const trouble = await waitForEnd(child, limitMinutes);
  if (trouble !== undefined) throw new BenchError(`${name} in ${checkout}: ${trouble}`);
  return said;
}
