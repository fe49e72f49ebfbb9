import { randomBytes } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { get } from 'node:http';
import { join } from 'node:path';
import { CoreClient, call, createSigner, readAnnouncedNodes } from '@skerry/client';
import { isDataDirTaken, isMissing, loadKeyFile, refuseUpgrade, urlOfListener } from '@skerry/kit';
import { NODE_API } from '@skerry/protocol/api/compute/node';
import { NETWORK_LISTS_API } from '@skerry/protocol/api/core/deployed/lists';
import { STATE_API, type StateDigestView } from '@skerry/protocol/api/core/state';
import { SYNC_API } from '@skerry/protocol/api/core/sync';
import { GATEWAY_API } from '@skerry/protocol/api/gateway';
import { type NodeView, SCHEDULER_API } from '@skerry/protocol/api/scheduler';
import { findDaemon } from '../doctor/own-daemon.ts';
import type { Role, RoleSettings } from './roles.ts';

/** Whether the network counts a node: what each role's membership shows by. */

/** `counted`: it is a member. `known`: so it is, and what is left takes hours or somebody else. */
export interface Standing {
  readonly state: 'waiting' | 'known' | 'counted';
  readonly text: string;
  /** How the network knows it: an address, or a node's id. */
  readonly id?: string;
  /** Of a compute node: what its announcements are signed with, and schedulers list it by. */
  readonly address?: string;
}

export interface Joined {
  readonly settings: RoleSettings;
  readonly coreUrl: string;
  /** Of a compute node; undefined where nobody says where it is. */
  readonly schedulerUrl: string | undefined;
}

const ANSWER = { timeoutMs: 5_000 } as const;
/** A scheduler says so of a node that only time and measurements can mend. */
const UNMEASURED = 'NODE_NOT_MEASURED';

const waiting = (text: string): Standing => ({ state: 'waiting', text });
/** Throws where it cannot be looked at. */
export const isThere = (path: string) =>
  stat(path).then(
    () => true,
    (error: unknown) => {
      if (isMissing(error)) return false;
      throw error;
    },
  );

const portOf = ({ ports }: RoleSettings, name: string) =>
  ports.find(({ variable }) => variable.endsWith(name))?.port ?? 0;
export const localUrl = (settings: RoleSettings, name = '_PORT') =>
  urlOfListener('http', settings.host, portOf(settings, name));

/** What a scheduler's word about a node comes to. Pure. */
export function standingOf(node: NodeView | undefined, id: string): Standing {
  if (!node) return waiting('the scheduler has not heard of the node yet');
  if (node.healthy) {
    const { cpu, memory_mib: memory, disk_gib: disk } = node.limits;
    return {
      state: 'counted',
      id,
      address: node.address,
      text: `the scheduler gives it instances: ${cpu} cores, ${memory} MiB, ${disk} GiB`,
    };
  }
  const why = node.reason?.message ?? 'it does not say why';
  if (node.reason?.code === UNMEASURED)
    return {
      state: 'known',
      id,
      address: node.address,
      text: `the scheduler knows it and waits for measurements: ${why}`,
    };
  return waiting(`the scheduler does not use it yet: ${why}`);
}

async function lookAtCompute({ settings, coreUrl, schedulerUrl }: Joined): Promise<Standing> {
  const { node_hash: id = '' } = await call(localUrl(settings), NODE_API.getNodeConfig, {}, ANSWER);
  const listed =
    schedulerUrl === undefined
      ? undefined
      : await call(schedulerUrl, SCHEDULER_API.listNodes, {}, ANSWER).catch(() => undefined);
  if (listed)
    return standingOf(
      listed.nodes.find((node) => node.node_id === id),
      id,
    );
  const announced = await readAnnouncedNodes(
    new CoreClient({ url: coreUrl }),
    AbortSignal.timeout(ANSWER.timeoutMs),
  );
  const own = announced.find(({ nodeId }) => nodeId === id);
  return own
    ? {
        state: 'known',
        id,
        address: own.address,
        text: `the network has its announcement; ${
          schedulerUrl === undefined
            ? 'its core node does not say where the scheduler is'
            : `no scheduler answers at ${schedulerUrl}`
        } (--scheduler)`,
      }
    : waiting('the node has not been announced yet');
}

/** A core node that is synced, and the one that it joined by. */
export interface Compared {
  readonly mine: StateDigestView;
  readonly theirs: StateDigestView;
  /** How many messages each keeps, whatever their status. */
  readonly kept: { readonly mine: number; readonly theirs: number };
  readonly coreUrl: string;
  /** Between two sessions with a peer. */
  readonly intervalSeconds: number;
}

/**
 * Whether a core node that is synced has what the network has. In a busy network no two digests are taken at the same message: there
 * it counts that all came that were there at the last session. Pure.
 */
export function standingOfCore({ mine, theirs, kept, coreUrl, intervalSeconds }: Compared): Standing {
  const isSame = mine.messages.digest === theirs.messages.digest;
  const isBusy = !isSame && kept.mine !== kept.theirs;
  const differ = Object.keys(theirs.derived).filter((part) => {
    const [here, there] = [mine.derived[part], theirs.derived[part]!];
    if (here === undefined) return false;
    return isBusy ? here.count === 0 && there.count > 0 : isSame && here.digest !== there.digest;
  });
  if (differ.length > 0) return waiting(`synced; being derived: ${differ.join(', ')}`);
  if (isBusy)
    return {
      state: 'counted',
      text: `synced with ${coreUrl}: ${kept.mine} messages; newer ones come every ${intervalSeconds} s`,
    };
  if (!isSame) return waiting(`synced; of the same ${kept.mine} messages, not the same are in force yet`);
  return { state: 'counted', text: `synced, with the same digest as ${coreUrl}: ${kept.mine} messages` };
}

async function lookAtCore({ settings, coreUrl }: Joined): Promise<Standing> {
  const url = localUrl(settings);
  const { state, behind, messages } = await call(url, SYNC_API.getSyncStatus, {}, ANSWER);
  if (state !== 'synced') return waiting(`${state}: ${messages} messages, ${behind} behind`);
  const [mine, theirs, there] = await Promise.all([
    call(url, STATE_API.getStateDigest, {}, ANSWER),
    call(coreUrl, STATE_API.getStateDigest, {}, ANSWER),
    call(coreUrl, SYNC_API.getSyncStatus, {}, ANSWER),
  ]);
  return standingOfCore({
    ...{ mine, theirs, coreUrl, kept: { mine: messages, theirs: there.messages } },
    intervalSeconds: Number(settings.config.syncIntervalSeconds),
  });
}

/** Whether the gateway answers a name below its domain, whoever has it: nobody's name is answered too. */
const answersName = (settings: RoleSettings, domain: string) =>
  new Promise<boolean>((resolve) => {
    const { hostname, port } = new URL(localUrl(settings, '_HTTP_PORT'));
    const host = `skerry-join-${randomBytes(4).toString('hex')}.${domain}`;
    const request = get({
      host: hostname.replace(/^\[|\]$/g, ''),
      port: port || 80,
      headers: { host },
      timeout: ANSWER.timeoutMs,
      // Its connection ends with it: it is none of a visitor.
      agent: false,
    })
      .once('response', (response) => resolve(response.resume() !== undefined))
      .once('timeout', () => resolve(false))
      .once('error', () => resolve(false));
    refuseUpgrade(request);
  });

async function lookAtGateway({ settings }: Joined): Promise<Standing> {
  const {
    domain,
    last_sync_time: synced,
    route_count: routes,
    instance_count: instances,
  } = await call(localUrl(settings, '_API_PORT'), GATEWAY_API.getGatewayStatus, {}, ANSWER);
  if (synced === 0) return waiting('the gateway has not read the instances yet');
  if (!(await answersName(settings, domain))) return waiting(`names below ${domain} are not answered yet`);
  return {
    state: 'counted',
    text: `names below ${domain} are answered: ${routes} routes of ${instances} instances`,
  };
}

async function lookAtMonitor({ settings, coreUrl }: Joined): Promise<Standing> {
  const path = join(settings.dataDir, 'key');
  if (!(await isThere(path))) return waiting('the monitor has no key yet');
  const { address } = createSigner(await loadKeyFile(path));
  const query = { addresses: address, pagination: 1 };
  const { messages } = await call(coreUrl, NETWORK_LISTS_API.listNetworkMessages, { query }, ANSWER);
  return messages.length > 0
    ? { state: 'counted', id: address, text: `the network accepts what ${address} publishes` }
    : waiting(`nothing of ${address} is on the core node yet`);
}

const LOOKS: Readonly<Record<Role, (joined: Joined) => Promise<Standing>>> = {
  compute: lookAtCompute,
  core: lookAtCore,
  gateway: lookAtGateway,
  monitor: lookAtMonitor,
};

/**
 * Why what answers at the ports of these settings says nothing of their node; undefined where it may. The ports are not tried, as
 * doctors do: the daemon is about to take them.
 */
async function findStranger(settings: RoleSettings): Promise<string | undefined> {
  const { role, dataDir, ports } = settings;
  if ((await isDataDirTaken(dataDir)) === false) return `no ${role} daemon works in ${dataDir} yet`;
  const doors = ports.map((port) => ({ ...port, state: 'taken' as const }));
  const { another } = await findDaemon(settings, doors);
  return another && `what answers at ${another} is another daemon`;
}

/** How the network sees the node now. What does not answer yet is waited for. */
export async function look(joined: Joined): Promise<Standing> {
  try {
    const stranger = await findStranger(joined.settings);
    if (stranger !== undefined) return waiting(stranger);
    return await LOOKS[joined.settings.role](joined);
  } catch (error) {
    return waiting((error as Error).message);
  }
}
