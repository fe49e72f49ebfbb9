import { type SpawnOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { hear } from './heard.ts';

/**
 * Runs a program that plays a scenario; what it prints is seen as it comes. Rejects where it fails, with its last words: whoever sees
 * the failure alone is to know why.
 * @param what it is, for the error
 */
export async function playProgram(
  what: string,
  program: string,
  args: readonly string[],
  options: Pick<SpawnOptions, 'cwd' | 'env' | 'signal' | 'killSignal'> = {},
): Promise<void> {
  const child = spawn(program, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
  const heard = hear(child);
  const [code, killedBy] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
  const words = await heard.lastWords();
  if (code !== 0) throw new Error(`${what} ended with ${code ?? killedBy}; its last words:\n${words}`);
}
