import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { PROGRAM_LIMITS } from '../limits.ts';

/** A file or directory of the machine that the inside sees, read-only unless it says otherwise. */
export interface Mount {
  readonly from: string;
  readonly to: string;
  readonly isWritable?: boolean;
  /** What can be written to it, where it is writable. */
  readonly sizeMib?: number;
}

export interface SandboxCommand {
  readonly mounts: readonly Mount[];
  /** What runs inside, seen from the inside. */
  readonly argv: readonly string[];
  /** User and group that only this sandbox has. */
  readonly uid: number;
  /** Directories of control groups, each with a `cgroup.procs`. */
  readonly groups: readonly string[];
  /** A file with the filter of system calls. */
  readonly filterPath: string;
}

/** bash counts the sizes of files in these. */
const SHELL_BLOCK_BYTES = 1024;

/**
 * Before anything else the shell puts itself into the control groups, so that there is no moment without limits; lets go
 * of files that this process was started with and did not open itself; then it becomes bubblewrap. File 3 is the channel
 * to the runtime, file 8 holds the options of bubblewrap, file 9 the filter.
 */
const enter = (fileBytes: number) => `filter=$1; shift
while [ "$1" != -- ]; do echo 0 >"$1/cgroup.procs" || exit 125; shift; done; shift
for file in /proc/self/fd/*; do file=\${file##*/}; [ "$file" -le 3 ] || eval "exec $file>&-"; done
ulimit -c 0; ulimit -f ${fileBytes / SHELL_BLOCK_BYTES}; ulimit -n ${PROGRAM_LIMITS.openFiles}
count=$1; shift; options=("\${@:1:count}"); shift "$count"
exec 8< <(printf '%s\\0' "\${options[@]}")
exec bwrap --args 8 -- "$@" 9<"$filter"`;

/** What the kernel tells everybody of the machine and of what others do on it, and no runtime reads. */
const MASKED = [
  ...['cmdline', 'config.gz', 'diskstats', 'interrupts', 'modules', 'partitions', 'schedstat', 'softirqs'],
  ...['swaps', 'timer_list', 'zoneinfo', 'sys/kernel/random/boot_id'],
]
  .map((name) => `/proc/${name}`)
  .filter((path) => existsSync(path));

const KNOWN = ['/usr', '/usr/bin', '/usr/lib', '/usr/lib/python3', '/usr/share', '/skerry'];

/** What the inside is given of its surroundings beside the runtime: empty, private, small. */
const ROOM = [
  ['--tmpfs', '/'],
  // bubblewrap makes parents that are missing unreadable to others.
  ...KNOWN.map((path) => ['--dir', path]),
  ['--proc', '/proc'],
  // A device that cannot be opened there: reading is refused.
  ...MASKED.map((path) => ['--ro-bind', '/dev/null', path]),
  ['--dev', '/dev'],
  ['--perms', '1777', '--size', String(PROGRAM_LIMITS.sharedMemoryBytes), '--tmpfs', '/dev/shm'],
  ['--perms', '1777', '--size', String(PROGRAM_LIMITS.fileBytes), '--tmpfs', '/tmp'],
].flat();

const MIB = 1024 * 1024;

function parentsOf(path: string): string[] {
  const parent = dirname(path);
  return parent === '/' || KNOWN.includes(parent) ? [] : [...parentsOf(parent), parent];
}

function bindOptions({ from, to, isWritable = false }: Mount): string[] {
  const parents = parentsOf(to).flatMap((path) => ['--perms', '0755', '--dir', path]);
  return [...parents, isWritable ? '--bind' : '--ro-bind', from, to];
}

/** A file may be as large as the largest place for one. */
const largestFileBytes = (mounts: readonly Mount[]) =>
  Math.max(PROGRAM_LIMITS.fileBytes, ...mounts.map(({ sizeMib = 0 }) => sizeMib * MIB));

/** Needed by setpriv to become somebody without rights; it gives them up for good before the runtime starts. */
const SETPRIV_CAPABILITIES = ['CAP_SETUID', 'CAP_SETGID', 'CAP_SETPCAP'];

/**
 * The command that starts a sandbox, for `spawn`. bubblewrap reads its options from file 8: its command line, which the inside
 * can read, would tell of the machine. Root makes the namespaces, so that nothing of the machine needs to be
 * readable by others and no user namespace is needed; what runs inside is a user of its own without capabilities, who
 * can gain none.
 */
export function sandboxCommand({ mounts, argv, uid, groups, filterPath }: SandboxCommand): string[] {
  const isolation = [
    '--unshare-ipc',
    '--unshare-pid',
    '--unshare-net',
    '--unshare-uts',
    '--unshare-cgroup-try',
  ];
  const options = [
    ...[...isolation, '--die-with-parent', '--new-session', '--hostname', 'program', '--clearenv'],
    ...['--setenv', 'PATH', '/usr/bin', '--setenv', 'HOME', '/tmp', '--setenv', 'LANG', 'C.UTF-8'],
    ...ROOM,
    ...mounts.flatMap(bindOptions),
    ...[
      '--symlink',
      'usr/lib',
      '/lib',
      '--symlink',
      'usr/lib64',
      '/lib64',
      '--remount-ro',
      '/',
      '--chdir',
      '/tmp',
    ],
    ...['--cap-drop', 'ALL', ...SETPRIV_CAPABILITIES.flatMap((name) => ['--cap-add', name])],
    ...['--seccomp', '9'],
  ];
  const setpriv = [
    ...['/usr/bin/setpriv', '--reuid', String(uid), '--regid', String(uid), '--clear-groups'],
    ...['--inh-caps=-all', '--bounding-set=-all', '--no-new-privs', '--'],
  ];
  const room = [String(options.length), ...options];
  return [
    '/bin/bash',
    '-c',
    enter(largestFileBytes(mounts)),
    'sandbox',
    filterPath,
    ...groups,
    '--',
    ...room,
    ...setpriv,
    ...argv,
  ];
}
