import { join } from 'node:path';
import { call } from '@skerry/client/call';
import { createSigner } from '@skerry/client/signer';
import { isDataDirTaken, urlOfListener } from '@skerry/kit';
import { loadKeyFile, readTextIfAny } from '@skerry/kit/files';
import { NODE_API as COMPUTE_API } from '@skerry/protocol/api/compute/node';
import { NODE_API as CORE_API } from '@skerry/protocol/api/core/node';
import { GATEWAY_API } from '@skerry/protocol/api/gateway';
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

type Place = Pick<RoleSettings, 'role' | 'dataDir' | 'domain'>;

/** The address of the key in a data directory; undefined where it has none, or none that can be read here. */
async function readAddress({ role, dataDir }: Place): Promise<string | undefined> {
  const { identity } = (await loadService(role)).keeping;
  if (identity === undefined) return undefined;
  return loadKeyFile(join(dataDir, identity)).then(
    (key) => createSigner(key).address,
    () => undefined,
  );
}

/** A gateway has no key, but an id in its data directory. Of an older release's, and where the file cannot be read here, the domain tells. */
async function isGatewayOf({ dataDir, domain }: Place, url: string): Promise<boolean> {
  const said = await call(url, GATEWAY_API.getGatewayStatus, {}, ANSWER);
  const { idFile } = (await loadService('gateway')).keeping;
  if (said.id === undefined || idFile === undefined) return said.domain === domain;
  return readTextIfAny(join(dataDir, idFile)).then(
    (id) => id?.trim() === said.id,
    () => said.domain === domain,
  );
}

/** Whether a daemon of the role is the one of the data directory. Where nothing there says who it is, its kind has to do. */
const IS_OF: Partial<Record<Role, (place: Place, url: string) => Promise<boolean>>> = {
  core: async (place, url) => {
    const [{ address }, own] = await Promise.all([
      call(url, CORE_API.getInfo, {}, ANSWER),
      readAddress(place),
    ]);
    return own === undefined || address === own;
  },
  compute: async (place, url) => {
    const [{ node_hash: id }, own] = await Promise.all([
      call(url, COMPUTE_API.getNodeConfig, {}, ANSWER),
      readAddress(place),
    ]);
    return own === undefined || id === nodeIdOf(own);
  },
  gateway: isGatewayOf,
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

/** Undefined where the daemon cannot say so now. */
async function isOf(place: Place, url: string): Promise<boolean | undefined> {
  return IS_OF[place.role]?.(place, url).catch((error: unknown) =>
    error instanceof AppError && NOT_OF_THE_ROLE.includes(error.code) ? false : undefined,
  );
}

/** Looks for the daemon of these settings at their ports. Others may have these: a node of another network, or one of "skerry up". */
export async function findDaemon(place: Place, ports: readonly PortFacts[]): Promise<DaemonFacts> {
  if ((await isDataDirTaken(place.dataDir)) === false) return { isThere: false, another: undefined };
  let another: string | undefined;
  for (const { host, port, state } of ports) {
    if (state !== 'taken') continue;
    const url = urlOfListener('http', host, port);
    if (!(await isDaemon(url))) continue;
    const isOwn = await isOf(place, url);
    if (isOwn) return { isThere: true, another: undefined };
    if (isOwn === false) another ??= url;
  }
  return { isThere: false, another };
}
