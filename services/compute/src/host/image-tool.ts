import { chown, open, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { type RunOptions, run } from './run.ts';
import { TOOLS_UID } from './users.ts';

export interface ToolFiles {
  /** Who the tool is; nobody's user by default. */
  readonly uid?: number;
  /** Files that it may write: its user's from then on, made empty where there are none. */
  readonly writes?: readonly string[];
  /** Directories that it may write below: its user's from then on. */
  readonly directories?: readonly string[];
  /** Files that it may read: its user's from then on where they are closed to others. */
  readonly reads?: readonly string[];
}

export interface ToolLimits {
  readonly addressSpaceBytes?: number;
  readonly cpuSeconds?: number;
}

const READABLE = 0o004;
const SYSTEM = [
  ['--ro-bind', '/usr', '/usr'],
  ...['bin', 'sbin', 'lib', 'lib64'].map((name) => ['--symlink', `usr/${name}`, `/${name}`]),
  ['--dev', '/dev'],
  ['--proc', '/proc'],
].flat();
/** What setpriv needs to give the rest up. */
const CAPABILITIES = ['CAP_SETUID', 'CAP_SETGID', 'CAP_SETPCAP'].flatMap((name) => ['--cap-add', name]);

function ancestorsOf(path: string): string[] {
  const parent = dirname(path);
  return parent === '/' ? [] : [...ancestorsOf(parent), parent];
}

/** The command of a tool that sees its files, at their own places, and the system's programs: nothing else. Pure. */
function toolCommand(
  argv: readonly string[],
  { uid = TOOLS_UID, writes = [], reads = [], directories = [] }: ToolFiles,
  { addressSpaceBytes, cpuSeconds }: ToolLimits = {},
): string[] {
  const places = new Set([...writes, ...reads, ...directories].flatMap(ancestorsOf));
  return [
    ...['prlimit', '--core=0', '--nofile=256'],
    ...(addressSpaceBytes === undefined ? [] : [`--as=${addressSpaceBytes}`]),
    ...(cpuSeconds === undefined ? [] : [`--cpu=${cpuSeconds}`]),
    ...['--', 'bwrap', '--unshare-ipc', '--unshare-pid', '--unshare-net', '--unshare-uts'],
    ...['--unshare-cgroup-try', '--die-with-parent', '--new-session', '--clearenv'],
    ...['--setenv', 'PATH', '/usr/bin:/usr/sbin', '--setenv', 'LC_ALL', 'C.UTF-8', '--tmpfs', '/'],
    ...SYSTEM,
    // Those that bubblewrap makes by itself may be closed to others.
    ...[...places].flatMap((path) => ['--perms', '0755', '--dir', path]),
    ...reads.flatMap((path) => ['--ro-bind', path, path]),
    ...[...writes, ...directories].flatMap((path) => ['--bind', path, path]),
    ...['--remount-ro', '/', '--chdir', '/', '--cap-drop', 'ALL', ...CAPABILITIES, '--'],
    ...['setpriv', '--reuid', `${uid}`, '--regid', `${uid}`, '--clear-groups', '--inh-caps=-all'],
    ...['--bounding-set=-all', '--no-new-privs', '--', ...argv],
  ];
}

/** Runs a tool that reads or writes disk images as a user of its own, in a root of its own. Throws as `run` does. */
export async function runImageTool(
  argv: readonly string[],
  files: ToolFiles,
  options: RunOptions & ToolLimits = {},
): Promise<string> {
  const { uid = TOOLS_UID, writes = [], reads = [], directories = [] } = files;
  for (const path of directories) await chown(path, uid, uid);
  for (const path of writes) {
    await (await open(path, 'a', 0o600)).close();
    await chown(path, uid, uid);
  }
  for (const path of reads) {
    const { mode, uid: owner } = await stat(path);
    // Nobody else gets to read what was closed to others.
    if (owner !== uid && (mode & READABLE) === 0) await chown(path, uid, uid);
  }
  const [program = '', ...args] = toolCommand(argv, files, options);
  return run(program, args, options);
}
