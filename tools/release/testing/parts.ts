import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { ROOT } from '../../source.ts';

/** The Node that the machine has, beside the one that the repository installs: the first on the path that is older. */
export function findOldNode(): string | undefined {
  const all = (process.env.PATH ?? '').split(delimiter).map((dir) => join(dir, 'node'));
  return all.find((node) => {
    try {
      accessSync(node, constants.X_OK);
      const version = execFileSync(node, ['--version'], { encoding: 'utf8' });
      return Number(/^v(\d+)/.exec(version)?.[1]) < 24;
    } catch {
      return false;
    }
  });
}

/** Names of the files in a tarball, without the folder that npm puts all into. */
export function listTarball(path: string): string[] {
  const out = execFileSync('tar', ['--list', '--gzip', '--file', path], {
    encoding: 'utf8',
    maxBuffer: 2 ** 24,
  });
  return out
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => line.replace(/^package\//, ''));
}

/**
 * Native code as npm would install it beside a package. It is linked from the repository: it is the same, and copying the
 * programs of Node and PostgreSQL would be most of the test's time.
 */
export function linkNative(names: readonly string[], modules: string): void {
  for (const name of names) {
    mkdirSync(dirname(join(modules, name)), { recursive: true });
    symlinkSync(join(ROOT, 'node_modules', name), join(modules, name));
  }
}

/** The first example in TypeScript of a package's README. */
export function exampleOf(readme: string): string {
  const [, example] = /^```ts\n([\s\S]*?)^```$/m.exec(readFileSync(readme, 'utf8'))!;
  return example!;
}

export interface RunningCore extends AsyncDisposable {
  readonly url: string;
}

/** Starts the command's core node on a port of its own, and resolves when it says that it is ready. */
export async function startCore(node: string, command: string, env: NodeJS.ProcessEnv): Promise<RunningCore> {
  const child = spawn(node, [command, 'core'], {
    env: { ...env, SKERRY_CORE_PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  const stop = async () => {
    child.kill('SIGTERM');
    await exited;
  };
  const lines: string[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    lines.push(line);
    const { msg, urls } = JSON.parse(line) as unknown as { msg: string; urls?: string[] };
    if (msg !== 'core is ready') continue;
    child.stdout.resume();
    return { url: urls![0]!, [Symbol.asyncDispose]: stop };
  }
  throw new Error(`the core node ended: ${lines.join('\n')}`);
}
