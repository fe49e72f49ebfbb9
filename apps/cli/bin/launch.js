// Plain JavaScript that any Node from 18 on can run: it finds the Node the project was built for
// (an npm package, see docs/dependencies.md) and hands over to it, so that a machine with an older Node works.
import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { constants } from 'node:os';
import { ensureLibraries } from './libraries.js';
import { isNodeNewEnough, MINIMUM_MAJOR } from './version.js';

const FORWARDED_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'];

/** Path of a Node that can run this project's TypeScript, or undefined. */
export function findNode() {
  if (isNodeNewEnough()) return process.execPath;
  try {
    return createRequire(import.meta.url).resolve(`node-${process.platform}-${process.arch}/bin/node`);
  } catch {
    return undefined;
  }
}

/** Runs `node ...args` with the right Node, passes signals on, and ends with the same exit code. */
export function launch(args) {
  const node = findNode();
  if (node === undefined) {
    console.error(
      `skerry needs Node ${MINIMUM_MAJOR} or newer; this is ${process.version} (${process.platform} ${process.arch}).\n` +
        'On Linux with glibc (x64, arm64) npm installs the right one, unless it is told --omit=optional.\n' +
        'Elsewhere, install a newer Node and try again.',
    );
    process.exit(1);
  }
  const obstacle = node === process.execPath ? undefined : ensureLibraries(node);
  if (obstacle !== undefined) {
    console.error(obstacle);
    process.exit(1);
  }
  // The ipc channel closes when this process ends, also by SIGKILL: a daemon then stops too (kit's runService).
  const child = spawn(node, args, { stdio: ['inherit', 'inherit', 'inherit', 'ipc'] });
  // A channel that was given to this process as a daemon is passed through.
  if (process.send) child.on('message', (message) => process.send(message));
  for (const signal of FORWARDED_SIGNALS) {
    // A terminal sends SIGINT to the whole group already; what arrives here alone (a service manager's stop) is passed on.
    process.on(signal, () => {
      if (!(signal === 'SIGINT' && process.stdin.isTTY)) child.kill(signal);
    });
  }
  child.on('error', (error) => {
    console.error(`skerry could not start ${node}: ${error.message}`);
    process.exit(1);
  });
  child.on('exit', (code, signal) => process.exit(signal ? 128 + constants.signals[signal] : code));
}
