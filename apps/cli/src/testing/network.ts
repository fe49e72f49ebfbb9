import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { hear } from '@skerry/kit/testing/heard';
import { beforeEnd } from '@skerry/kit/testing/processes';
import { SKERRY } from './shell.ts';

/** A network on this machine, as its owner starts it. */
export interface Up {
  readonly child: ChildProcess;
  readonly pid: number;
}

/** `skerry up`, until it says that the network is up. */
export async function startNetwork(...args: string[]): Promise<Up> {
  const child = spawn(process.execPath, [SKERRY, 'up', '--quiet', '--json', ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const printed = once(createInterface({ input: child.stdout }), 'line');
  const [line] = (await beforeEnd(printed, child, 'skerry up', hear(child, ['stderr']))) as [string];
  assert.match(line, /^\{/);
  return { child, pid: child.pid! };
}

export async function end({ child }: Up, signal: NodeJS.Signals): Promise<number | null> {
  const ended = once(child, 'exit');
  child.kill(signal);
  const [code] = (await ended) as [number | null];
  return code;
}
