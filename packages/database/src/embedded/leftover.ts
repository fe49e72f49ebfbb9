import { readFile, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { type ProcessFacts, readProcess } from './process.ts';

/** What stands in a cluster's postmaster.pid, if anything does. */
export type Leftover =
  | { readonly kind: 'none' }
  /** The pid belongs to nobody, or to a process that has nothing to do with this cluster. */
  | { readonly kind: 'stale'; readonly pid: number }
  /** A PostgreSQL server works in this cluster. */
  | { readonly kind: 'running'; readonly pid: number };

export async function findLeftover(cluster: string): Promise<Leftover> {
  const text = await readFile(join(cluster, 'postmaster.pid'), 'utf8').catch(() => undefined);
  if (text === undefined) return { kind: 'none' };
  const pid = Number(text.split('\n', 1)[0]);
  return decideLeftover(pid, readProcess(pid), await realpath(cluster));
}

/**
 * A process that we may not look into counts as running: to wait for a stranger is harmless, to start a second
 * server on one cluster is not.
 */
export function decideLeftover(pid: number, facts: ProcessFacts | undefined, cluster: string): Leftover {
  if (facts === undefined || facts.zombie) return { kind: 'stale', pid };
  if (facts.program !== undefined && facts.program !== 'postgres') return { kind: 'stale', pid };
  if (facts.workingDirectory !== undefined && facts.workingDirectory !== cluster)
    return { kind: 'stale', pid };
  return { kind: 'running', pid };
}

/** Ends the server of this cluster that a killed supervisor left; does nothing if the pid is not surely that server. */
export async function signalLeftover(
  cluster: string,
  signal: 'SIGINT' | 'SIGQUIT',
): Promise<number | undefined> {
  const leftover = await findLeftover(cluster);
  if (leftover.kind !== 'running') return undefined;
  const facts = readProcess(leftover.pid);
  if (facts?.program !== 'postgres' || facts.workingDirectory !== (await realpath(cluster))) return undefined;
  try {
    process.kill(leftover.pid, signal);
  } catch {
    // It ended in this moment, which is what was wanted.
  }
  return leftover.pid;
}
