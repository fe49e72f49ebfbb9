import { execFileSync, spawn } from 'node:child_process';
import { hear } from '@skerry/kit/testing/heard';
import { awaitOutput, endProcess } from '@skerry/kit/testing/processes';
import { type NodeProcess, startNode } from './node.ts';

function canMount(): boolean {
  try {
    execFileSync('unshare', ['--mount', 'mount', '-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', '/mnt']);
    return true;
  } catch {
    return false;
  }
}

/** Why tests that mount are left out here; false where they are not. */
export const NO_MOUNTS = canMount()
  ? false
  : 'needs the right to mount a tmpfs in a namespace of its own (root)';

export interface SmallDisks extends AsyncDisposable {
  /** Where others find what is on them, in their order. */
  readonly inside: readonly string[];
  /** How nsenter is told where they are. */
  readonly namespace: string;
  /** @param log from which level on what the node logs is in its standard output; undefined: nowhere */
  start(log?: 'error'): Promise<NodeProcess>;
}

/** Small disks, in a namespace of their own: they outlive the nodes that run on them, and go with their holder. @param home of these nodes @param sizeMib of each @param more options of the mount */
export async function mountSmallDisks(
  at: readonly string[],
  home: string,
  sizeMib: number,
  more: readonly string[] = [],
): Promise<SmallDisks> {
  const options = [`size=${sizeMib}m`, ...more].join(',');
  const mounts = at.map((path) => `mount -t tmpfs -o ${options} tmpfs '${path}'`);
  const script = [...mounts, 'echo ready', 'exec sleep infinity'].join(' && ');
  const holder = spawn('unshare', ['--mount', 'sh', '-c', script], { stdio: ['ignore', 'pipe', 'pipe'] });
  await awaitOutput(holder, 'the holder of small disks', hear(holder, ['stderr']));
  const namespace = `--mount=/proc/${holder.pid}/ns/mnt`;
  return {
    inside: at.map((path) => `/proc/${holder.pid}/root${path}`),
    namespace,
    start: (log) =>
      startNode(home, undefined, log === undefined ? {} : { SKERRY_LOG_LEVEL: log }, {
        ...{ execPath: 'nsenter', execArgv: [namespace, process.execPath] },
        ...(log === undefined ? {} : { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] }),
      }),
    [Symbol.asyncDispose]: () => endProcess(holder, 'SIGKILL'),
  };
}
