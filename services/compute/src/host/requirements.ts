/** What a server needs to run virtual machines, and what it has. */
export interface HostFacts {
  readonly architecture: string;
  readonly isLinux: boolean;
  readonly isRoot: boolean;
  /** Debian, or one of its children: apt-get is there. */
  readonly isDebian: boolean;
  readonly hasNetAdmin: boolean;
  readonly canOpenTun: boolean;
  readonly canWriteNetworkSettings: boolean;
  readonly missingPrograms: readonly string[];
}

/** Programs that are run, and the Debian packages they come in. Nothing here is a daemon. */
export const PROGRAMS: Readonly<Record<string, string>> = {
  'qemu-system-x86_64': 'qemu-system-x86',
  'qemu-img': 'qemu-utils',
  mmdebstrap: 'mmdebstrap',
  mke2fs: 'e2fsprogs',
  genisoimage: 'genisoimage',
  nft: 'nftables',
  ip: 'iproute2',
  flock: 'util-linux',
  setpriv: 'util-linux',
  unshare: 'util-linux',
  prlimit: 'util-linux',
  bwrap: 'bubblewrap',
  xz: 'xz-utils',
  chroot: 'coreutils',
  'dpkg-deb': 'dpkg',
};

/** The same for the sandboxes of programs. Without the last two there are still JavaScript and WebAssembly. */
export const SANDBOX_PROGRAMS: Readonly<Record<string, string>> = {
  bwrap: 'bubblewrap',
  setpriv: 'util-linux',
  python3: 'python3',
  unsquashfs: 'squashfs-tools',
};
const OPTIONAL_PROGRAMS = ['python3', 'unsquashfs'];
export const isNeeded = (program: string) => !OPTIONAL_PROGRAMS.includes(program);

/** Where Debian's packages put libraries for Python. */
export const PYTHON_LIBRARIES_DIRECTORY = '/usr/lib/python3/dist-packages';
/** Libraries that programs in Python find, and the Debian packages they come in. A node runs programs without them, too. */
export const PYTHON_LIBRARIES: Readonly<Record<string, string>> = {
  django: 'python3-django',
  fastapi: 'python3-fastapi',
  flask: 'python3-flask',
  multipart: 'python3-multipart',
  requests: 'python3-requests',
  starlette: 'python3-starlette',
  yaml: 'python3-yaml',
};
/** Where a library may be: a package, or one file. */
export const libraryPaths = (name: string): string[] =>
  [name, `${name}.py`].map((file) => `${PYTHON_LIBRARIES_DIRECTORY}/${file}`);

/** Packages that missing programs and libraries come in, each once. */
export function packagesFor(programs: readonly string[]): string[] {
  return [
    ...new Set(
      programs.map(
        (program) => PROGRAMS[program] ?? SANDBOX_PROGRAMS[program] ?? PYTHON_LIBRARIES[program] ?? program,
      ),
    ),
  ].sort();
}

/** Everything that keeps this server from running virtual machines, each as a sentence that says how to mend it. Pure. */
export function listObstacles(facts: HostFacts): string[] {
  const obstacles: string[] = [];
  if (!facts.isLinux) return ['virtual machines need Linux'];
  if (facts.architecture !== 'x64') {
    obstacles.push(`virtual machines require x86_64; this server is ${facts.architecture}`);
  }
  if (facts.missingPrograms.length > 0) {
    const packages = packagesFor(facts.missingPrograms).join(' ');
    const how = facts.isDebian
      ? `${facts.isRoot ? '' : 'sudo '}apt-get install --no-install-recommends ${packages}`
      : `install them (on Debian they are in ${packages})`;
    obstacles.push(`missing programs: ${facts.missingPrograms.join(', ')}; ${how}`);
  }
  if (!facts.isRoot) {
    obstacles.push(
      'creating images, network interfaces and firewall rules requires root; start the compute node as root (sudo)',
    );
  } else {
    if (!facts.hasNetAdmin)
      obstacles.push('the capability CAP_NET_ADMIN is missing; grant it to the container or run on the host');
    if (!facts.canOpenTun)
      obstacles.push('cannot open /dev/net/tun; load the module tun, or pass the device to the container');
    if (facts.hasNetAdmin && !facts.canWriteNetworkSettings) {
      obstacles.push(
        '/proc/sys/net is not writable, so packets cannot be forwarded; make it writable in the container',
      );
    }
  }
  return obstacles;
}
