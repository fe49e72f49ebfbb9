import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { SKERRY } from './shell.ts';

async function run(command: string, ...args: string[]): Promise<void> {
  const child = spawn(command, args, { stdio: ['ignore', 'inherit', 'inherit'] });
  const [code] = (await once(child, 'exit')) as [number | null];
  assert.equal(code, 0, `${command} ${args.join(' ')} failed; its last words are above`);
}

/** Names that a compute node gives to network namespaces, and that nobody takes back when it is killed, go with the scenario. */
const OWN_NAMES = 'mkdir -p /run/netns && mount -t tmpfs none /run/netns && exec "$0" "$@"';

/** A scenario of this directory, or an absolute path, in a network namespace of its own, so that ports and interfaces are nobody else's; takes root. */
export const runAlone = (scenario: string, ...args: string[]) =>
  run(
    'unshare',
    ...['--net', '--mount', '--', 'sh', '-c', OWN_NAMES],
    process.execPath,
    resolve(import.meta.dirname, scenario),
    ...args,
  );

/** Where the network is: a namespace of its own has none. */
export const buildImage = () => run(process.execPath, SKERRY, 'image', 'build', 'debian:12');
