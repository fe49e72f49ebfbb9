import { basename, resolve } from 'node:path';
import { playProgram } from '@skerry/kit/testing/play';
import { SKERRY } from './shell.ts';

/** Names that a compute node gives to network namespaces, and that nobody takes back when it is killed, go with the scenario. */
const OWN_NAMES = 'mkdir -p /run/netns && mount -t tmpfs none /run/netns && exec "$0" "$@"';

/** A scenario of this directory, or an absolute path, in a network namespace of its own, so that ports and interfaces are nobody else's; takes root. */
export const runAlone = (scenario: string, ...args: string[]) =>
  playProgram(basename(scenario), 'unshare', [
    ...['--net', '--mount', '--', 'sh', '-c', OWN_NAMES],
    process.execPath,
    resolve(import.meta.dirname, scenario),
    ...args,
  ]);

/** Where the network is: a namespace of its own has none. */
export const buildImage = () =>
  playProgram('image build', process.execPath, [SKERRY, 'image', 'build', 'debian:12']);
