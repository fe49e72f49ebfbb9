import { playProgram } from '@skerry/kit/testing/play';

/** A network, mounts and processes of its own: whatever it leaves ends with it. */
const APART = ['--net', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc', '--'];

/** Runs a scenario, as root, where it touches nothing of the machine. Rejects where it failed, with its last words. */
export async function playApart(scenario: string, ...args: string[]): Promise<void> {
  // The shell stays, and takes the ends of processes whose parent was killed.
  const begin = ['sh', '-c', 'ip link set lo up; "$@"; exit $?', 'sh', process.execPath, scenario, ...args];
  await playProgram(scenario, 'unshare', [...APART, ...begin]);
}
