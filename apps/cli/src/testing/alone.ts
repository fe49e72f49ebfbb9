import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { basename, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { SKERRY } from './shell.ts';

/** Of what a scenario prints, so many lines are told again where it fails. */
const LAST_LINES = 40;
/** What it has printed arrives within this time, also where a daemon that was left behind has its pipes. */
const DRAIN_MS = 1_000;

/** Shows what it prints as it comes. */
async function run(what: string, command: string, ...args: string[]): Promise<void> {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let last: string[] = [];
  for (const [from, to] of [
    [child.stdout, process.stdout],
    [child.stderr, process.stderr],
  ] as const)
    from.setEncoding('utf8').on('data', (text: string) => {
      to.write(text);
      last = `${last.join('\n')}${text}`.split('\n').slice(-LAST_LINES - 1);
    });
  const closed = once(child, 'close');
  const [code] = (await once(child, 'exit')) as [number | null];
  await Promise.race([closed, delay(DRAIN_MS, undefined, { ref: false })]);
  assert.equal(code, 0, `${what} failed; its last words:\n${last.join('\n').trim()}`);
}

/** Names that a compute node gives to network namespaces, and that nobody takes back when it is killed, go with the scenario. */
const OWN_NAMES = 'mkdir -p /run/netns && mount -t tmpfs none /run/netns && exec "$0" "$@"';

/** A scenario of this directory, or an absolute path, in a network namespace of its own, so that ports and interfaces are nobody else's; takes root. */
export const runAlone = (scenario: string, ...args: string[]) =>
  run(
    basename(scenario),
    'unshare',
    ...['--net', '--mount', '--', 'sh', '-c', OWN_NAMES],
    process.execPath,
    resolve(import.meta.dirname, scenario),
    ...args,
  );

/** Where the network is: a namespace of its own has none. */
export const buildImage = () => run('image build', process.execPath, SKERRY, 'image', 'build', 'debian:12');
