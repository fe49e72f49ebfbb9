import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

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

/** Installs what the lockfile in a folder says: what only one tool needs. Again only where the lockfile has changed. */
export function installLocked(folder: string): void {
  const lock = readFileSync(join(folder, 'package-lock.json'), 'utf8');
  const stamp = join(folder, 'node_modules/.installed-lock.json');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === lock) return;
  runNpm(['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline'], folder);
  writeFileSync(stamp, lock);
}
