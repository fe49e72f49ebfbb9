import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { runProgram } from './run.ts';
import { ROOT } from './source.ts';

/** Both checks run at once, each on half of the cores: a thread that no core is free for only adds to the work. */
const THREADS = Math.max(1, Math.floor(availableParallelism() / 2));
/** tsc's own number. Each of its checkers makes the types anew that it meets. */
const CHECKERS_MAX = 4;
const TSC_THREADS =
  THREADS === 1 ? ['--singleThreaded'] : ['--checkers', String(Math.min(CHECKERS_MAX, THREADS))];

/**
 * Format, lint and types of the whole repository. Resolves with the names of checks that failed.
 * @param output the descriptor that what they find goes to
 */
export async function checkSources(output: 1 | 2 = 1): Promise<string[]> {
  const bin = join(ROOT, 'node_modules/.bin');
  const say = output === 1 ? console.log : console.error;
  const check = async (name: string, command: string, args: readonly string[]): Promise<string[]> => {
    const startMs = performance.now();
    const code = await runProgram(join(bin, command), args, output);
    say(`${code === 0 ? 'ok' : 'FAILED'}: ${name} (${Math.round(performance.now() - startMs)} ms)`);
    return code === 0 ? [] : [name];
  };
  const failed = await Promise.all([
    check('format and lint', 'biome', ['ci', '--colors=off', `--threads=${THREADS}`, '.']),
    check('types', 'tsc', ['--project', '.', ...TSC_THREADS]),
  ]);
  return failed.flat();
}

if (import.meta.main) process.exitCode = (await checkSources()).length === 0 ? 0 : 1;
