import { execFileSync } from 'node:child_process';

/** Runs npm with the Node of the project, whichever the machine has: it makes the same bytes everywhere. */
export function runNpm(args: readonly string[], cwd: string): string {
  const { npm_execpath: npm } = process.env;
  const [program, first] = npm?.endsWith('.js') ? [process.execPath, [npm]] : ['npm', []];
  return execFileSync(program, [...first, '--loglevel=error', ...args], {
    cwd,
    encoding: 'utf8',
    maxBuffer: 64 * 1024 ** 2,
  });
}
