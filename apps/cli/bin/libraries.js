// The Node of the npm package is linked with libraries that a minimal Debian lacks. Plain JavaScript, as launch.js is.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';

/** Debian's packages of what it is linked with, beside the C library. */
const PACKAGES = {
  'libatomic.so.1': 'libatomic1',
  'libstdc++.so.6': 'libstdc++6',
  'libgcc_s.so.1': 'libgcc-s1',
};

/** What the dynamic loader says is missing when it starts the program, or undefined. */
function findMissingLibrary(program) {
  const { stderr } = spawnSync(program, ['--version'], { encoding: 'utf8' });
  return /error while loading shared libraries: ([^:\s]+):/.exec(stderr ?? '')?.[1];
}

/** The operator may have said that nothing is installed (services/compute/src/config.ts has the setting). */
const mayInstall = () =>
  process.geteuid?.() === 0 &&
  existsSync('/etc/debian_version') &&
  !/^(false|no|0|off)$/i.test(process.env.SKERRY_COMPUTE_INSTALL_PACKAGES ?? '');

function install(name) {
  console.error(
    `skerry: installing what Node needs: apt-get install --no-install-recommends ${name} (SKERRY_COMPUTE_INSTALL_PACKAGES=no turns this off)`,
  );
  const options = { stdio: ['ignore', 2, 2], env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' } };
  // A server that was just started upgrades itself, and holds the lock meanwhile.
  const wait = ['-q', '-o', 'DPkg::Lock::Timeout=300'];
  spawnSync('apt-get', [...wait, 'update'], options);
  spawnSync('apt-get', [...wait, '-y', '--no-install-recommends', 'install', name], options);
}

/** Sees that the program can be loaded: as root on Debian by installing what is missing. Otherwise a sentence says what to do. */
export function ensureLibraries(program) {
  const tried = new Set();
  for (;;) {
    const library = findMissingLibrary(program);
    if (library === undefined) return undefined;
    const name = PACKAGES[library];
    if (name === undefined || tried.has(name) || !mayInstall()) {
      const how = name === undefined ? 'install it' : `on Debian: sudo apt-get install ${name}`;
      return `skerry needs the library ${library}, which is not on this computer; ${how}`;
    }
    tried.add(name);
    install(name);
  }
}
