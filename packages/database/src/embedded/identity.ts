import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { type Command, type Owner, runProgram } from './program.ts';

/** The uid and gid of `nobody`, which every Linux lists; PostgreSQL refuses a uid that has no name. */
export const NOBODY_ID = 65534;

const NAMESPACE = ['unshare', '--user', `--map-user=${NOBODY_ID}`, `--map-group=${NOBODY_ID}`];
const PROBE_TIMEOUT_MS = 10_000;

/**
 * Who PostgreSQL runs as. It refuses to be root, so root runs it either in a user namespace, where it sees itself
 * as nobody while its files stay root's, or as another user.
 */
export type Identity =
  | { readonly kind: 'self' }
  | { readonly kind: 'user-namespace' }
  | ({ readonly kind: 'user' } & Owner);

export interface IdentityFacts {
  readonly euid: number;
  /** Of an existing cluster; its files can be used by nobody else. */
  readonly clusterOwner: Owner | undefined;
  readonly userNamespaces: boolean;
}

export function decideIdentity({ euid, clusterOwner, userNamespaces }: IdentityFacts): Identity {
  if (euid !== 0) return { kind: 'self' };
  if (clusterOwner !== undefined && clusterOwner.uid !== 0) return { kind: 'user', ...clusterOwner };
  if (userNamespaces) return { kind: 'user-namespace' };
  return { kind: 'user', uid: NOBODY_ID, gid: NOBODY_ID };
}

/** The owner that the cluster's files must have. */
export function ownerOf(identity: Identity): Owner {
  if (identity.kind === 'user') return { uid: identity.uid, gid: identity.gid };
  return { uid: process.geteuid?.() ?? 0, gid: process.getegid?.() ?? 0 };
}

/** The command line that runs `argv` as this identity and sends it `deathSignal` when our process ends, however it ends. */
export function commandOf(identity: Identity, deathSignal: 'INT' | 'KILL', argv: readonly string[]): Command {
  const prefix = identity.kind === 'user-namespace' ? NAMESPACE : [];
  const [program, ...args] = [...prefix, 'setpriv', '--pdeathsig', deathSignal, ...argv] as [
    string,
    ...string[],
  ];
  return { program, args, owner: identity.kind === 'user' ? ownerOf(identity) : undefined };
}

/** Containers often refuse user namespaces; the only way to know is to make one. */
export async function findUserNamespaces(): Promise<boolean> {
  const command = commandOf({ kind: 'user-namespace' }, 'KILL', ['true']);
  const result = await runProgram(command, { timeoutMs: PROBE_TIMEOUT_MS });
  return result.code === 0;
}

/** Whether `owner`, without root's powers, may walk down to `path`. Group membership beyond `gid` and ACLs are not seen. */
export async function isReachable(path: string, owner: Owner): Promise<boolean> {
  for (let at = path; ; at = dirname(at)) {
    const entry = await stat(at);
    if (entry.isDirectory() && !mayTraverse(entry, owner)) return false;
    if (at === dirname(at)) return true;
  }
}

export function mayTraverse(entry: { mode: number } & Owner, owner: Owner): boolean {
  if (entry.uid === owner.uid) return (entry.mode & 0o100) !== 0;
  if (entry.gid === owner.gid) return (entry.mode & 0o010) !== 0;
  return (entry.mode & 0o001) !== 0;
}
