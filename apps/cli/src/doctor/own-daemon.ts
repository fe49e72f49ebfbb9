import { join } from 'node:path';
import { call } from '@skerry/client/call';
import { createSigner } from '@skerry/client/signer';
import { isDataDirTaken, urlOfListener } from '@skerry/kit';
import { loadKeyFile } from '@skerry/kit/files';
import { NODE_API as COMPUTE_API } from '@skerry/protocol/api/compute/node';
import { NODE_API as CORE_API } from '@skerry/protocol/api/core/node';
import { AppError, nodeIdOf } from '@skerry/protocol/forms';
import type { Role, RoleSettings } from '../joining/roles.ts';
import { loadService } from '../network/daemon.ts';
import type { PortFacts } from './facts.ts';

/** Whether what answers at a role's ports is the daemon that works in the role's data directory. */

const ANSWER_MS = 10_000;
const ANSWER = { timeoutMs: ANSWER_MS } as const;

/** What a daemon answers that is none of the role, or one of somebody else. */
const NOT_OF_THE_ROLE: readonly string[] = ['ROUTE_NOT_FOUND', 'UNEXPECTED_ANSWER'];

export interface DaemonFacts {
  readonly isThere: boolean;
  /** A URL of these settings where another daemon answers, while this one does not. */
  readonly another: string | undefined;
}

type Place = Pick<RoleSettings, 'role' | 'dataDir'>;

/** Whether a node says that it has the key of an address. A gateway has no key. */
const SAYS: Partial<Record<Role, (url: string, address: string) => Promise<boolean>>> = {
  core: async (url, address) => (await call(url, CORE_API.getInfo, {}, ANSWER)).address === address,
  compute: async (url, address) =>
    (await call(url, COMPUTE_API.getNodeConfig, {}, ANSWER)).node_hash === nodeIdOf(address),
};

async function isDaemon(url: string): Promise<boolean> {
  const answer = await fetch(url, {
    redirect: 'manual',
    // A connection that stayed open would be one of a gateway's visitors.
    headers: { connection: 'close' },
    signal: AbortSignal.timeout(ANSWER_MS),
  }).catch(() => undefined);
  await answer?.body?.cancel();
  return answer?.headers.get('server')?.startsWith('skerry/') === true;
}

/** The address of the key in a data directory; undefined where it has none, or none that can be read here. */
async function readAddress({ role, dataDir }: Place): Promise<string | undefined> {
  const { identity } = (await loadService(role)).keeping;
  if (identity === undefined) return undefined;
  return loadKeyFile(join(dataDir, identity)).then(
    (key) => createSigner(key).address,
    () => undefined,
  );
}

/** Whether a daemon has a data directory's key; undefined where it cannot say so now. One without a key to compare is believed. */
async function hasKey(role: Role, url: string, address: string | undefined): Promise<boolean | undefined> {
  const says = SAYS[role];
  if (says === undefined || address === undefined) return true;
  return says(url, address).catch((error: unknown) =>
    error instanceof AppError && NOT_OF_THE_ROLE.includes(error.code) ? false : undefined,
  );
}

/** Looks for the daemon of these settings at their ports. Others may have these: a node of another network, or one of "skerry up". */
export async function findDaemon(place: Place, ports: readonly PortFacts[]): Promise<DaemonFacts> {
  const { role, dataDir } = place;
  if ((await isDataDirTaken(dataDir)) === false) return { isThere: false, another: undefined };
  const address = await readAddress(place);
  let another: string | undefined;
  for (const { host, port, state } of ports) {
    if (state !== 'taken') continue;
    const url = urlOfListener('http', host, port);
    if (!(await isDaemon(url))) continue;
    const isOwn = await hasKey(role, url, address);
    if (isOwn) return { isThere: true, another: undefined };
    if (isOwn === false) another ??= url;
  }
  return { isThere: false, another };
}
