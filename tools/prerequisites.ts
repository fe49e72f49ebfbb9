import { accessSync, constants, existsSync } from 'node:fs';
import { join } from 'node:path';
import { APT_OPTIONS } from '@skerry/kit';
import {
  libraryPaths,
  PROGRAMS,
  PYTHON_LIBRARIES,
  SANDBOX_PROGRAMS,
} from '../services/compute/src/host/requirements.ts';
import { runProgram } from './run.ts';

/**
 * Programs that the tests run, and the Debian packages they come in. What the compute node would install by itself is among
 * them: tests of its parts run before any node does, and beside each other.
 */
const TEST_PROGRAMS: Readonly<Record<string, string>> = {
  ...PROGRAMS,
  ...SANDBOX_PROGRAMS,
  'chromium-headless-shell': 'chromium-headless-shell',
  curl: 'curl',
  haproxy: 'haproxy',
  nsd: 'nsd',
  openssl: 'openssl',
  pgbouncer: 'pgbouncer',
  ping: 'iputils-ping',
  ssh: 'openssh-client',
  'ssh-keygen': 'openssh-client',
  'systemd-analyze': 'systemd',
  'systemd-notify': 'systemd',
};

/** Checked beside npm's; the package brings the library itself, whatever its version is called. */
const SYSTEM_LIBRARY = { file: 'libsecp256k1.so', package: 'libsecp256k1-dev' } as const;
const LIBRARY_DIRECTORIES = ['x86_64', 'aarch64'].map((machine) => `/usr/lib/${machine}-linux-gnu`);

const DIRECTORIES = ['/usr/local/sbin', '/usr/sbin', '/sbin', '/usr/local/bin', '/usr/bin', '/bin'];

function isInstalled(program: string): boolean {
  return [...(process.env.PATH ?? '').split(':'), ...DIRECTORIES].some((directory) => {
    try {
      accessSync(join(directory, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

function isHere(name: string): boolean {
  const paths = PYTHON_LIBRARIES[name]
    ? libraryPaths(name)
    : name === SYSTEM_LIBRARY.file
      ? LIBRARY_DIRECTORIES.map((directory) => join(directory, name))
      : undefined;
  return paths ? paths.some((path) => existsSync(path)) : isInstalled(name);
}

/** Sees that the programs are there: as root on Debian they are installed, elsewhere it is said what to install. */
export async function ensurePrograms(more: Readonly<Record<string, string>> = {}): Promise<void> {
  const programs: Readonly<Record<string, string>> = {
    ...{ ...TEST_PROGRAMS, ...more, ...PYTHON_LIBRARIES },
    [SYSTEM_LIBRARY.file]: SYSTEM_LIBRARY.package,
  };
  const missing = Object.keys(programs).filter((name) => !isHere(name));
  if (missing.length === 0) return;
  const packages = [...new Set(missing.map((program) => programs[program]!))];
  const install = ['install', '--yes', '--no-install-recommends', ...packages];
  if (process.geteuid?.() !== 0 || !existsSync('/etc/debian_version')) {
    console.error(`the tests need ${missing.join(', ')}; on Debian: sudo apt-get ${install.join(' ')}`);
    return;
  }
  console.error(`installing what the tests need: apt-get ${install.join(' ')}`);
  await runProgram('apt-get', [...APT_OPTIONS, 'update'], 2);
  // A name server is among them: the tests start their own, and the package must not start one.
  const quiet = ['RUNLEVEL=1', 'SYSTEMD_OFFLINE=1'];
  const code = await runProgram('env', [...quiet, 'apt-get', ...APT_OPTIONS, ...install], 2);
  if (code !== 0)
    console.error(`apt-get ended with exit code ${code}: what needs ${missing.join(', ')} will fail`);
}
