import { call } from '@skerry/client/call';
import { NODE_API } from '@skerry/protocol/api/compute/node';
import { STATE_API } from '@skerry/protocol/api/core/state';
import { SYNC_API } from '@skerry/protocol/api/core/sync';
import { SCHEDULER_API } from '@skerry/protocol/api/scheduler';
import { AppError, NODE_DRAINING } from '@skerry/protocol/forms';
import { shellWord } from '@skerry/protocol/text/shell-word';
import type { Context } from '../context.ts';
import { listOwnAddresses } from '../doctor/machine.ts';
import { readName } from '../doctor/outside.ts';
import { findScheduler } from '../networks/services.ts';
import { localUrl } from './counted.ts';
import type { Role, RoleSettings } from './roles.ts';
import { startUnit, writeSettings } from './units.ts';
import { waitUntil } from './wait.ts';

/** How each role is emptied before it is stopped, and what speaks against it before anything is done. */

export interface LeaveOptions {
  readonly role?: Role;
  readonly settings?: string;
  readonly scheduler?: string;
  readonly timeout: number;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
  readonly force?: boolean;
}

export interface Leaving {
  readonly context: Context;
  readonly settings: RoleSettings;
  readonly file: string;
  readonly isUnit: boolean;
  readonly options: LeaveOptions;
}

const ANSWER = { timeoutMs: 5_000 } as const;
/** What a compute node announces from its next start on. */
export const DRAIN = { SKERRY_COMPUTE_DRAIN: 'yes' } as const;
const GATEWAY_OPEN =
  /^skerry_gateway_(tls_open_connections|http_open_connections|quic_open_flows) ([0-9]+)$/gm;

/** An error that says more. */
export const withDetails = (error: unknown, more: object): unknown =>
  error instanceof AppError
    ? new AppError(error.code, error.message, { details: { ...(error.details as object), ...more } })
    : error;

/** The machines that are still there, by what the node itself says. */
export const listStaying = async (settings: RoleSettings) =>
  Object.keys(await call(localUrl(settings), NODE_API.listExecutions, {}, ANSWER));

/** What the scheduler still has on the node, and what the node itself still runs. */
async function lookAtMachines({ settings }: Leaving, schedulerUrl: string) {
  try {
    const { node_hash: id, reason } = await call(localUrl(settings), NODE_API.getNodeConfig, {}, ANSWER);
    if (reason?.code !== NODE_DRAINING)
      return { left: -1, text: 'the node has to be started again to hear of it' };
    const staying = await listStaying(settings);
    const { nodes } = await call(schedulerUrl, SCHEDULER_API.listNodes, {}, ANSWER);
    const seen = nodes.find(({ node_id: one }) => one === id);
    if (!seen) return { left: staying.length, text: `${staying.length} instances here` };
    if (seen.leaving === null)
      return { left: -1, text: 'the scheduler has not heard yet that the node leaves' };
    const left = Math.max(seen.instances, staying.length);
    return { left, text: `${left} instances are still here; they move as far as other nodes have room` };
  } catch (error) {
    return { left: -1, text: (error as Error).message };
  }
}

/** Whether the node tells everybody already that it leaves. */
const isDraining = (settings: RoleSettings): Promise<boolean> =>
  call(localUrl(settings), NODE_API.getNodeConfig, {}, ANSWER).then(
    ({ reason }) => reason?.code === NODE_DRAINING,
    () => false,
  );

/** The node takes nothing new, and its machines move elsewhere. */
async function drainCompute(leaving: Leaving): Promise<string[]> {
  const { context, settings, file, isUnit, options } = leaving;
  const { output } = context;
  await writeSettings(file, DRAIN);
  // Whoever asks again, after a timeout or Ctrl-C, has started it again already.
  if (!(await isDraining(settings))) {
    if (isUnit) await startUnit('compute', output, options.timeout);
    else
      output.demand(
        'Start the node again, so that it says that it leaves',
        `skerry compute --settings ${shellWord(file)}`,
      );
  }
  try {
    const schedulerUrl = await findScheduler(settings.coreUrl ?? context.coreUrl, options.scheduler);
    await waitUntil(output, {
      what: 'the node is empty',
      limitMs: options.timeout,
      look: () => lookAtMachines(leaving, schedulerUrl),
      isOver: ({ left }) => left === 0,
      hint: 'other nodes need room for what is here; with --force the node leaves all the same',
    });
    return [];
  } catch (error) {
    const staying = await listStaying(settings).catch(() => []);
    if (!options.force) throw withDetails(error, { staying });
    return staying;
  }
}

/**
 * The connections that go through a gateway, by what it says of itself in `/metrics`. One of an older release does not say how many
 * it follows over QUIC. Throws where it does not say how many there are. Pure.
 */
export function countOpen(metrics: string): number {
  const counts = new Map([...metrics.matchAll(GATEWAY_OPEN)].map(([, kind, count]) => [kind, Number(count)]));
  if (!counts.has('tls_open_connections') || !counts.has('http_open_connections'))
    throw new AppError('UNEXPECTED_ANSWER', 'the gateway does not say how many connections are open');
  return [...counts.values()].reduce((sum, count) => sum + count, 0);
}

export async function lookAtConnections(url: string) {
  const answer = await fetch(url, { signal: AbortSignal.timeout(ANSWER.timeoutMs) });
  const text = await answer.text();
  if (!answer.ok) throw new AppError('UNEXPECTED_ANSWER', `the gateway answers ${answer.status}`);
  const open = countOpen(text);
  return { open, text: `${open} are open` };
}

async function drainGateway({ context, settings, options }: Leaving): Promise<string[]> {
  const url = `${localUrl(settings, '_API_PORT')}/metrics`;
  await waitUntil(context.output, {
    what: 'all connections have ended',
    limitMs: options.timeout,
    look: () => lookAtConnections(url),
    isOver: ({ open }) => open === 0,
    hint: 'with --force those that are left are cut off',
  }).catch((error: unknown) => {
    if (!options.force) throw error;
  });
  return [];
}

/** Whether a peer has the same messages at this moment. */
async function hasEqualPeer(settings: RoleSettings, peerUrls: readonly string[]): Promise<boolean> {
  const digestAt = (url: string) =>
    call(url, STATE_API.getStateDigest, {}, ANSWER).then(
      ({ messages }) => messages.digest,
      () => undefined,
    );
  const [own, ...others] = await Promise.all([localUrl(settings), ...peerUrls].map(digestAt));
  return own !== undefined && others.includes(own);
}

/**
 * What was sent to this node last must be elsewhere, too. In a busy network no two digests are taken at the same message: there
 * it takes a session with a peer that ends after the leaving began.
 */
async function waitUntilHandedOver({ context, settings, options }: Leaving): Promise<void> {
  let beganMs: number | undefined;
  await waitUntil(context.output, {
    what: 'the peers have what this node has',
    limitMs: options.timeout,
    look: async () => {
      const { state, peers, clock } = await call(localUrl(settings), SYNC_API.getSyncStatus, {}, ANSWER);
      // Its operator has said with --force that nobody else has to have them.
      if (state === 'alone') return { isHandedOver: true, text: state };
      // By the clock that the node dates its sessions with.
      beganMs ??= clock.time_ms + clock.correction_ms;
      const began = beganMs;
      const isHandedOver =
        state === 'synced' &&
        (peers.some(({ synced_ms }) => synced_ms !== null && synced_ms >= began) ||
          (await hasEqualPeer(
            settings,
            peers.map(({ name }) => name),
          )));
      return { isHandedOver, text: `${state}, ${peers.length} peers` };
    },
    isOver: ({ isHandedOver }) => isHandedOver,
    hint: `see "skerry node status --core ${shellWord(localUrl(settings))}"; with --force the node leaves all the same`,
  });
}

async function drainCore(leaving: Leaving): Promise<string[]> {
  await waitUntilHandedOver(leaving).catch((error: unknown) => {
    if (!leaving.options.force) throw error;
  });
  return [];
}

export const DRAINS: Readonly<Record<Role, (leaving: Leaving) => Promise<string[]>>> = {
  compute: drainCompute,
  gateway: drainGateway,
  core: drainCore,
  monitor: async () => [],
};

const refusal = (message: string, hint: string) =>
  new AppError('CONFIRMATION_REQUIRED', message, { details: { hint } });

/** New visitors go where the DNS says, so it must say something else first. */
async function gatewayObstacle({ domain }: RoleSettings): Promise<AppError | undefined> {
  const { addresses } = domain === undefined ? { addresses: [] } : await readName(`skerry-leave.${domain}`);
  const own = new Set(listOwnAddresses());
  return addresses.some((address) => own.has(address))
    ? refusal(
        `*.${domain} still leads to this server, so visitors would find nobody`,
        `point the record *.${domain} at another gateway first, or leave all the same with --force`,
      )
    : undefined;
}

async function coreObstacle(settings: RoleSettings): Promise<AppError | undefined> {
  const { state, messages } = await call(localUrl(settings), SYNC_API.getSyncStatus, {}, ANSWER);
  return state === 'alone' && messages > 0
    ? refusal(
        `this node has no peers, so nobody may have a copy of its ${messages} messages`,
        'set SKERRY_CORE_PEERS and start it again first, or leave all the same with --force',
      )
    : undefined;
}

const OBSTACLES: Readonly<Record<Role, (settings: RoleSettings) => Promise<AppError | undefined>>> = {
  compute: async () => undefined,
  gateway: gatewayObstacle,
  core: coreObstacle,
  monitor: async () => undefined,
};

/** Why a node that serves does not leave unless it is forced to; undefined where nothing speaks against it. */
export async function findObstacle(settings: RoleSettings): Promise<AppError | undefined> {
  try {
    return await OBSTACLES[settings.role](settings);
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
}

/**
 * A process that nobody can ask what is on it.
 * @param another where another daemon answers in its place
 */
export function silentObstacle(
  { settings, file }: Pick<Leaving, 'settings' | 'file'>,
  another: string | undefined,
): AppError {
  const { role, dataDir } = settings;
  const door = role === 'gateway' ? '_API_PORT' : '_PORT';
  const what =
    another === undefined
      ? ` and does not answer at ${localUrl(settings, door)}`
      : `, and what answers at ${another} is another daemon`;
  return refusal(
    `a ${role} node works in ${dataDir}${what}, so it cannot be emptied`,
    `if it was started with another port, say that here, too: SKERRY_${role.toUpperCase()}${door} in ${file}, or before the command; see "skerry doctor --role ${role}"; with --force it is ended all the same`,
  );
}
