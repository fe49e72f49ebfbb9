import { stat } from 'node:fs/promises';
import { call } from '@skerry/client/call';
import { NODE_API } from '@skerry/protocol/api/compute/node';
import { STATE_API } from '@skerry/protocol/api/core/state';
import { SYNC_API } from '@skerry/protocol/api/core/sync';
import { SCHEDULER_API } from '@skerry/protocol/api/scheduler';
import { AppError, NODE_DRAINING } from '@skerry/protocol/forms';
import type { Context } from '../context.ts';
import { findRoles, gatherEnvironment } from '../doctor/doctor.ts';
import { listOwnAddresses } from '../doctor/machine.ts';
import { isDaemonThere, readName, readPort } from '../doctor/outside.ts';
import { EXIT } from '../exit-codes.ts';
import { findScheduler } from '../networks/services.ts';
import { localUrl } from './counted.ts';
import { confirmPlan } from './questions.ts';
import { findSettingsFile, type Role, type RoleSettings, readRole } from './roles.ts';
import { hasUnit, startUnit, stopUnit, unitOf, writeSettings } from './units.ts';
import { waitUntil } from './wait.ts';
import { withdrawNode } from './withdraw.ts';

export interface LeaveOptions {
  readonly role?: Role;
  readonly settings?: string;
  readonly scheduler?: string;
  readonly timeout: number;
  readonly yes?: boolean;
  readonly force?: boolean;
}

interface Leaving {
  readonly context: Context;
  readonly settings: RoleSettings;
  readonly file: string;
  readonly isUnit: boolean;
  readonly options: LeaveOptions;
}

const ANSWER = { timeoutMs: 5_000 } as const;
const GATEWAY_OPEN = /^skerry_gateway_(?:tls|http)_open_connections ([0-9]+)$/gm;

async function findRole(context: Context, { role }: LeaveOptions): Promise<Role> {
  if (role !== undefined) return role;
  const found = await findRoles(context);
  if (found.length === 1) return found[0]!;
  throw new AppError('INVALID_PARAMETERS', `say which of them leaves: --role ${found.join(', ')}`);
}

async function isRunning({ settings }: Leaving): Promise<boolean> {
  const { host, ports } = settings;
  return isDaemonThere(settings, await Promise.all(ports.map((port) => readPort(host, port))));
}

/** The machines that are still there, by what the node itself says. */
const listStaying = async (settings: RoleSettings) =>
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

/** The node takes nothing new, and its machines move elsewhere. */
async function drainCompute(leaving: Leaving): Promise<string[]> {
  const { context, settings, file, isUnit, options } = leaving;
  const { output } = context;
  await writeSettings(file, { SKERRY_COMPUTE_DRAIN: 'yes' });
  if (isUnit) await startUnit('compute', context.output, options.timeout);
  else
    output.demand(
      'Start the node again, so that it says that it leaves',
      `skerry compute --settings ${file}`,
    );
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
    if (!options.force)
      throw error instanceof AppError
        ? new AppError(error.code, error.message, { details: { ...(error.details as object), staying } })
        : error;
    return staying;
  }
}

/** New visitors go where the DNS says, so it must say something else first. */
async function drainGateway({ context, settings, options }: Leaving): Promise<string[]> {
  const { domain } = settings;
  const { addresses } = domain === undefined ? { addresses: [] } : await readName(`skerry-leave.${domain}`);
  const own = new Set(listOwnAddresses());
  if (addresses.some((address) => own.has(address)) && !options.force)
    throw new AppError(
      'CONFIRMATION_REQUIRED',
      `*.${domain} still leads to this machine, so visitors would find nobody`,
      {
        details: {
          hint: `point the record *.${domain} at another gateway first, or leave all the same with --force`,
        },
      },
    );
  const url = `${localUrl(settings, '_API_PORT')}/metrics`;
  await waitUntil(context.output, {
    what: 'all connections have ended',
    limitMs: options.timeout,
    async look() {
      const answer = await fetch(url, { signal: AbortSignal.timeout(ANSWER.timeoutMs) });
      const open = [...(await answer.text()).matchAll(GATEWAY_OPEN)].reduce(
        (sum, [, count]) => sum + Number(count),
        0,
      );
      return { open, text: `${open} are open` };
    },
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
  const look = () => call(localUrl(settings), SYNC_API.getSyncStatus, {}, ANSWER);
  const { state, messages, clock } = await look();
  if (state === 'alone') {
    if (messages === 0) return;
    throw new AppError(
      'CONFIRMATION_REQUIRED',
      `this node has no peers, so nobody may have a copy of its ${messages} messages`,
      {
        details: {
          hint: 'set SKERRY_CORE_PEERS and start it again first, or leave all the same with --force',
        },
      },
    );
  }
  // By the clock that the node dates its sessions with.
  const beganMs = clock.time_ms + clock.correction_ms;
  await waitUntil(context.output, {
    what: 'the peers have what this node has',
    limitMs: options.timeout,
    look: async () => {
      const { state, peers } = await look();
      const isHandedOver =
        state === 'synced' &&
        (peers.some(({ synced_ms }) => synced_ms !== null && synced_ms >= beganMs) ||
          (await hasEqualPeer(
            settings,
            peers.map(({ name }) => name),
          )));
      return { isHandedOver, text: `${state}, ${peers.length} peers` };
    },
    isOver: ({ isHandedOver }) => isHandedOver,
    hint: 'see "skerry node status"; with --force the node leaves all the same',
  });
}

async function drainCore(leaving: Leaving): Promise<string[]> {
  await waitUntilHandedOver(leaving).catch((error: unknown) => {
    if (!leaving.options.force) throw error;
  });
  return [];
}

const DRAINS: Readonly<Record<Role, (leaving: Leaving) => Promise<string[]>>> = {
  compute: drainCompute,
  gateway: drainGateway,
  core: drainCore,
  monitor: async () => [],
};

async function stop(leaving: Leaving): Promise<void> {
  const { context, isUnit, settings, options } = leaving;
  if (isUnit) {
    await stopUnit(settings.role);
    return;
  }
  context.output.demand('Now end it, with Ctrl-C where it runs', `skerry ${settings.role}`);
  await waitUntil(context.output, {
    what: 'the daemon has ended',
    limitMs: options.timeout,
    look: async () => ({ is: await isRunning(leaving), text: 'it still answers' }),
    isOver: ({ is }) => !is,
    hint: 'end the process; what is left to do then is said again by the same command',
  });
}

/** What is on disk after a node has left, and how it is removed. */
async function listRemains({ settings, file }: Leaving): Promise<string[]> {
  const places = [file, settings.dataDir];
  const there = await Promise.all(places.map((place) => stat(place).catch(() => undefined)));
  return places.filter((_, at) => there[at] !== undefined);
}

const nothingHere = ({ settings: { role, dataDir }, file }: Leaving) =>
  new AppError('NODE_NOT_FOUND', `no ${role} node is on this machine`, {
    details: {
      hint: `none answers, and neither ${file} nor ${dataDir} is there; with --settings FILE it is looked for by its own settings`,
    },
  });

/** Takes this machine out of the network again: it is emptied first, then stopped. */
export async function leaveNetwork(context: Context, options: LeaveOptions): Promise<number> {
  const role = await findRole(context, options);
  const file = options.settings ?? (await findSettingsFile(context, role));
  const settings = await readRole(role, await gatherEnvironment(context, role, file));
  const leaving: Leaving = { ...{ context, settings, file, options }, isUnit: await hasUnit(role) };
  const answers = await isRunning(leaving);
  if (!answers && !leaving.isUnit && (await listRemains(leaving)).length === 0) throw nothingHere(leaving);
  if (!options.yes) await confirmPlan(context, `Take this ${role} node out of the network?`);
  const wasRunning = role === 'monitor' || answers;
  if (!wasRunning) context.output.note(`No ${role} node answers here; nothing is drained.`);
  const staying = wasRunning ? await DRAINS[role](leaving) : [];
  if (wasRunning && (leaving.isUnit || role !== 'monitor')) await stop(leaving);
  const coreUrl = settings.coreUrl ?? context.coreUrl;
  const withdrawn = role === 'compute' ? await withdrawNode(settings.dataDir, coreUrl) : undefined;
  const remains = await listRemains(leaving);
  const lines = [
    `This ${role} node has left the network${leaving.isUnit ? `; ${unitOf(role)} is stopped and disabled` : ''}.`,
    ...(role === 'monitor' && !leaving.isUnit ? ['End it where it runs, with Ctrl-C: skerry monitor.'] : []),
    ...(staying.length > 0 ? [`Instances whose machines stay here: ${staying.join(', ')}.`] : []),
    ...(withdrawn === undefined ? [] : [`Announcements taken back: ${withdrawn}.`]),
    ...(role === 'core' ? ["Remove its URL from the other nodes' SKERRY_CORE_PEERS."] : []),
    ...remains.map((place) => `Still on disk: ${place} (rm -r ${place})`),
  ];
  context.output.result({ role, staying, withdrawn: withdrawn ?? null, remains }, lines.join('\n'));
  return EXIT.ok;
}
