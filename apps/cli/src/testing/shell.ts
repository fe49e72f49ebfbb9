import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

/** Running commands as a person at a shell would, for end-to-end tests. */

export const SKERRY = fileURLToPath(new URL('../../bin/skerry.js', import.meta.url));
const COMMAND_TIMEOUT_MS = 600_000;
/** Looking starts a process, or reads all of /proc: whoever looks all the time takes it from what is waited for. */
const LOOK_MS = 100;

export interface Ran {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** What a command printed and how it ended. @param env in place of this process's variables */
export async function run(command: string, args: readonly string[], env?: NodeJS.ProcessEnv): Promise<Ran> {
  const child = spawn(command, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: COMMAND_TIMEOUT_MS,
    env: env ?? process.env,
  });
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit'),
  ]);
  return { code: code as number | null, stdout: stdout.trim(), stderr: stderr.trim() };
}

/** The same, for a command that must succeed. */
export async function succeed(command: string, ...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await run(command, args);
  if (code !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${code}: ${stderr || stdout}`);
  return stdout;
}

export const skerry = (...args: string[]) => succeed(process.execPath, SKERRY, ...args);

/** Tries until something holds. For what no event announces: a port that opens, a process that ends. */
export async function until(what: string, timeoutMs: number, holds: () => Promise<boolean>): Promise<number> {
  const startMs = performance.now();
  for (;;) {
    if (await holds()) return performance.now() - startMs;
    if (performance.now() - startMs > timeoutMs) throw new Error(`after ${timeoutMs} ms still not: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
}

const startMs = performance.now();

/** A line that says how far the scenario is. */
export function say(line: string): void {
  console.log(`[${((performance.now() - startMs) / 1000).toFixed(1).padStart(6)} s] ${line}`);
}
