import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';

/** A network, mounts and processes of its own: whatever it leaves ends with it. */
const APART = ['--net', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc', '--'];

/** Runs a scenario, as root, where it touches nothing of the machine. Rejects where it failed. */
export async function playApart(scenario: string, ...args: string[]): Promise<void> {
  // The shell stays, and takes the ends of processes whose parent was killed.
  const begin = ['sh', '-c', 'ip link set lo up; "$@"; exit $?', 'sh', process.execPath, scenario, ...args];
  const child = spawn('unshare', [...APART, ...begin], { stdio: ['ignore', 'inherit', 'inherit'] });
  const [code] = (await once(child, 'exit')) as [number | null];
  assert.equal(code, 0, `${scenario} failed; its last words are above`);
}
