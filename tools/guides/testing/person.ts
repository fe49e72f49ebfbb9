import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { SKERRY } from '../../../apps/cli/src/testing/shell.ts';
import type { Place } from '../follow.ts';

/**
 * Somebody at a machine without systemd who does what a guide says and what the command then asks for: says yes, starts a
 * daemon in another terminal, ends it there.
 */
export interface Person extends Place, AsyncDisposable {
  /** Starts a role's daemon in another terminal, as its command says. */
  start(command: string): void;
  /** Ends what runs in that terminal. */
  end(role: string): Promise<void>;
}

type Environment = Readonly<Record<string, string>>;

const START = /^(?:Run this in another terminal|Start the node again)/;
const END = /^Now end it/;
const COMMAND = /^ {2}skerry (\S+)/;
const STEP_TIMEOUT_MS = 300_000;

/** `skerry` on the PATH: this repository's. Whoever joins or leaves is asked, and says yes. */
async function installCommand(directory: string): Promise<string> {
  const bin = join(directory, 'bin');
  await mkdir(bin, { recursive: true });
  const script = `#!/bin/sh
case "$1" in join | leave) set -- "$@" --yes ;; esac
exec '${process.execPath}' '${SKERRY}' "$@"
`;
  await writeFile(join(bin, 'skerry'), script);
  await chmod(join(bin, 'skerry'), 0o755);
  return bin;
}

async function endChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const over = once(child, 'exit');
  child.kill('SIGTERM');
  await over;
}

/** The other terminals of a person, one for each role. */
class Terminals {
  readonly #running = new Map<string, ChildProcess>();
  readonly #env: Environment;

  constructor(env: Environment) {
    this.#env = env;
  }

  start(command: string): void {
    const [, role = ''] = command.trim().split(' ');
    const child = spawn('bash', ['-c', `exec ${command}`], {
      stdio: ['ignore', 'ignore', 'inherit'],
      env: this.#env,
    });
    this.#running.set(role, child);
  }

  async end(role: string): Promise<void> {
    const child = this.#running.get(role);
    if (child) await endChild(child);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#running.values()].map(endChild));
  }
}

/** Reads along, and does in another terminal what is asked for there. */
async function readAlong(stream: NodeJS.ReadableStream, terminals: Terminals): Promise<string> {
  const lines: string[] = [];
  let asked: 'start' | 'end' | undefined;
  for await (const line of createInterface({ input: stream })) {
    lines.push(line);
    const [command, role] = COMMAND.exec(line) ?? [];
    if (asked && command !== undefined) {
      await terminals.end(role!);
      if (asked === 'start') terminals.start(line.trim());
    }
    asked = START.test(line) ? 'start' : END.test(line) ? 'end' : undefined;
  }
  return lines.join('\n');
}

export async function createPerson(
  directory: string,
  environment: Environment,
  standIns: Environment,
): Promise<Person> {
  const bin = await installCommand(directory);
  const home = join(directory, 'home');
  const { PATH = '', NODE_COMPILE_CACHE } = process.env;
  const env = {
    ...environment,
    PATH: `${bin}:${PATH}`,
    HOME: home,
    SKERRY_HOME: home,
    // What the run has compiled is not compiled again for each command and daemon.
    ...(NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE }),
  };
  const terminals = new Terminals(env);
  return {
    standIns,
    isServer: false,
    start: (command) => terminals.start(command),
    end: (role) => terminals.end(role),
    async run(script) {
      const child = spawn('bash', ['-ec', `exec 2>&1\n${script}`], {
        stdio: ['ignore', 'pipe', 'inherit'],
        env,
        timeout: STEP_TIMEOUT_MS,
      });
      const [printed, [code]] = await Promise.all([readAlong(child.stdout, terminals), once(child, 'exit')]);
      return { code: code as number | null, printed };
    },
    [Symbol.asyncDispose]: () => terminals[Symbol.asyncDispose](),
  };
}
