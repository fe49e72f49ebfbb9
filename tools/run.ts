import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { ROOT } from './source.ts';

/**
 * Runs a program of the repository and gives its exit code; what it prints is seen as it comes.
 * @param output the descriptor that its standard output goes to
 */
export async function runProgram(
  command: string,
  args: readonly string[],
  output: 1 | 2 = 1,
): Promise<number> {
  const child = spawn(command, args, { cwd: ROOT, stdio: ['inherit', output, 'inherit'] });
  const [code] = (await once(child, 'exit')) as [number | null];
  return code ?? 1;
}
