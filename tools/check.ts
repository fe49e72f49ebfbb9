import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { runProgram } from './run.ts';
import { ROOT } from './source.ts';

/** tsc's own number. Each of its checkers makes the types anew that it meets: one that no core is free for only adds to the work. */
const CHECKERS_MAX = 4;
const CHECKERS = String(Math.min(CHECKERS_MAX, availableParallelism()));

/**
 * Format, lint and types of the whole repository. Resolves with the names of checks that failed.
 * @param output the descriptor that what they find goes to
 */
export async function checkSources(output: 1 | 2 = 1): Promise<string[]> {
  const bin = join(ROOT, 'node_modules/.bin');
  const checks: [string, string, string[]][] = [
    ['format and lint', join(bin, 'biome'), ['ci', '--colors=off', '.']],
    ['types', join(bin, 'tsc'), ['--project', '.', '--checkers', CHECKERS]],
  ];
  const failed: string[] = [];
  for (const [name, command, args] of checks) {
    const startMs = performance.now();
    const code = await runProgram(command, args, output);
    const say = output === 1 ? console.log : console.error;
    say(`${code === 0 ? 'ok' : 'FAILED'}: ${name} (${Math.round(performance.now() - startMs)} ms)`);
    if (code !== 0) failed.push(name);
  }
  return failed;
}

if (import.meta.main) process.exitCode = (await checkSources()).length === 0 ? 0 : 1;
