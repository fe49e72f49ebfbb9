/** What a machine needs to run virtual machines, and what it has. */
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

/** The same for the sandboxes of programs. Without Python there are still JavaScript and WebAssembly. */
export const SANDBOX_PROGRAMS: Readonly<Record<string, string>> = {
  bwrap: 'bubblewrap',
  setpriv: 'util-linux',
  python3: 'python3',
};
const OPTIONAL_PROGRAMS = ['python3'];
export const isNeeded = (program: string) => !OPTIONAL_PROGRAMS.includes(program);

/** Packages that the missing programs come in, each once. */
export function packagesFor(programs: readonly string[]): string[] {
  return [
    ...new Set(programs.map((program) => PROGRAMS[program] ?? SANDBOX_PROGRAMS[program] ?? program)),
  ].sort();
}

/** Everything that keeps this machine from running virtual machines, each as a sentence that says how to mend it. Pure. */
export function listObstacles(facts: HostFacts): string[] {
  const obstacles: string[] = [];
  if (!facts.isLinux) return ['virtual machines need Linux'];
  if (facts.architecture !== 'x64') {
    obstacles.push(`virtual machines are built for x86_64 only; this machine is ${facts.architecture}`);
  }
  if (facts.missingPrograms.length > 0) {
    const packages = packagesFor(facts.missingPrograms).join(' ');
    const how = facts.isDebian
      ? `${facts.isRoot ? '' : 'sudo '}apt-get install --no-install-recommends ${packages}`
      : `install them (on Debian they are in ${packages})`;
    obstacles.push(`missing programs: ${facts.missingPrograms.join(', ')}; ${how}`);
  }
  if (!facts.isRoot) {
    obstacles.push('images, taps and firewall rules are made as root; start the compute node as root (sudo)');
  } else {
    if (!facts.hasNetAdmin)
      obstacles.push(
        'the capability CAP_NET_ADMIN is missing; give it to the container or start on the machine itself',
      );
    if (!facts.canOpenTun)
      obstacles.push(
        '/dev/net/tun cannot be opened; load the module tun, or give the device to the container',
      );
    if (facts.hasNetAdmin && !facts.canWriteNetworkSettings) {
      obstacles.push(
        '/proc/sys/net is not writable, so packets cannot be passed on; a container needs it writable',
      );
    }
  }
  return obstacles;
}
