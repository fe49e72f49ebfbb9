import { stat } from 'node:fs/promises';
import { isDataDirTaken } from '@skerry/kit';
import { AppError } from '@skerry/protocol/forms';
import { shellWord } from '@skerry/protocol/text/shell-word';
import type { Context } from '../context.ts';
import { findRoles, gatherEnvironment } from '../doctor/doctor.ts';
import { readPort } from '../doctor/outside.ts';
import { findDaemon } from '../doctor/own-daemon.ts';
import { EXIT } from '../exit-codes.ts';
import { isNamedByVariable, listDevnetRoles, notToLeave, readDevnetSettings } from './devnet.ts';
import {
  DRAINS,
  findObstacle,
  type LeaveOptions,
  type Leaving,
  silentObstacle,
  withDetails,
} from './drains.ts';
import { type Presence, showLeavePlan } from './leave-plan.ts';
import { confirmPlan } from './questions.ts';
import { findSettingsFile, ROLES, type Role, type RoleSettings, readRole } from './roles.ts';
import { hasUnit, stopUnit, unitOf } from './units.ts';
import { waitUntil } from './wait.ts';
import { withdrawNode } from './withdraw.ts';

async function findRole(context: Context, { role, settings }: LeaveOptions): Promise<Role> {
  if (role !== undefined) return role;
  const settled = await findRoles(context);
  const found = settled.length > 0 ? settled : ROLES.filter((one) => isNamedByVariable(context, one));
  if (found.length === 0) {
    const isMeant = settings !== undefined || (await hasUnit('compute'));
    if (!isMeant && (await listDevnetRoles(context)).length > 0) throw await notToLeave(context);
    return 'compute';
  }
  if (found.length === 1) return found[0]!;
  throw new AppError('INVALID_PARAMETERS', `say which of them leaves: --role ${found.join(', ')}`);
}

/** A monitor has no port: of it, only its data directory tells. */
async function findPresence(
  settings: RoleSettings,
): Promise<{ readonly presence: Presence; readonly another?: string | undefined }> {
  const { ports, dataDir } = settings;
  const isTaken = await isDataDirTaken(dataDir);
  if (isTaken === false) return { presence: 'none' };
  const found = await Promise.all(ports.map((port) => readPort(port)));
  const { isThere, another } = await findDaemon(settings, found);
  if (isThere) return { presence: 'answers' };
  return { presence: isTaken ? 'works' : 'unknown', another };
}

const isThere = (presence: Presence) => presence === 'answers' || presence === 'works';

/**
 * Ends the daemon, and waits until it has ended, whoever started it. Throws TIMED_OUT with what still runs.
 * @returns whether it still runs: undefined where nobody can tell
 */
async function stop({ context, isUnit, settings, options }: Leaving): Promise<false | undefined> {
  const { role, dataDir } = settings;
  if (isUnit) await stopUnit(role);
  const before = await findPresence(settings);
  if (isThere(before.presence))
    context.output.demand('Now end it, with Ctrl-C where it runs', `skerry ${role}`);
  const { presence } = await waitUntil(context.output, {
    what: 'the daemon has ended',
    limitMs: options.timeout,
    async look() {
      const { presence } = await findPresence(settings);
      return { presence, text: presence === 'answers' ? 'it still answers' : `it still works in ${dataDir}` };
    },
    isOver: ({ presence }) => !isThere(presence),
    hint: 'end the process; what is left to do then is said again by the same command',
  }).catch((error: unknown) => {
    throw withDetails(error, { running: { role, data_dir: dataDir } });
  });
  return presence === 'none' ? false : undefined;
}

/** What is on disk after a node has left, and how it is removed. */
async function listRemains({ settings, file }: Leaving): Promise<string[]> {
  const places = [file, settings.dataDir];
  const there = await Promise.all(places.map((place) => stat(place).catch(() => undefined)));
  return places.filter((_, at) => there[at] !== undefined);
}

const nothingHere = ({ settings: { role, dataDir }, file }: Leaving) =>
  new AppError('NODE_NOT_FOUND', `no ${role} node is on this server`, {
    details: {
      hint: `none answers, and neither ${file} nor ${dataDir} is there; with --settings FILE it is looked for by its own settings`,
    },
  });

/** Throws what speaks against leaving, NODE_NOT_FOUND. */
async function begin(context: Context, options: LeaveOptions) {
  const role = await findRole(context, options);
  const file = options.settings ?? (await findSettingsFile(context, role));
  const settings = await readRole(role, await gatherEnvironment(context, role, file));
  const leaving: Leaving = { ...{ context, settings, file, options }, isUnit: await hasUnit(role) };
  const { presence, another } = await findPresence(settings);
  const remains = await listRemains(leaving);
  if (!isThere(presence) && !leaving.isUnit && remains.length === 0) {
    const isSaid = options.settings !== undefined || isNamedByVariable(context, role);
    const isDevnet = !isSaid && (await readDevnetSettings(context, role)) !== undefined;
    throw isDevnet ? await notToLeave(context) : nothingHere(leaving);
  }
  const isSilent = presence === 'works' && role !== 'monitor';
  const against = presence === 'answers' ? await findObstacle(settings) : undefined;
  return { leaving, presence, remains, obstacle: isSilent ? silentObstacle(leaving, another) : against };
}

/** Takes this server out of the network again: it is emptied first, then stopped. */
export async function leaveNetwork(context: Context, options: LeaveOptions): Promise<number> {
  const begun = await begin(context, options);
  const { leaving, presence, obstacle } = begun;
  const { settings, isUnit } = leaving;
  const { role, dataDir } = settings;
  if (options.dryRun) return showLeavePlan(begun);
  if (obstacle && !options.force) throw obstacle;
  if (!options.yes) await confirmPlan(context, `Take this ${role} node out of the network?`);
  if (!isThere(presence)) context.output.note(`No ${role} node runs here; nothing is drained.`);
  const staying = presence === 'answers' ? await DRAINS[role](leaving) : [];
  const running = await stop(leaving);
  const coreUrl = settings.coreUrl ?? context.coreUrl;
  const withdrawn = role === 'compute' ? await withdrawNode(dataDir, coreUrl) : undefined;
  const remains = await listRemains(leaving);
  const lines = [
    `This ${role} node has left the network${isUnit ? `; ${unitOf(role)} is stopped and disabled` : ''}.`,
    ...(running === undefined
      ? [
          `Nobody can tell here whether it still runs: ${dataDir} cannot be looked at (sudo). End it where it runs.`,
        ]
      : []),
    ...(staying.length > 0 ? [`Instances whose virtual machines stay here: ${staying.join(', ')}.`] : []),
    ...(withdrawn === undefined ? [] : [`Announcements taken back: ${withdrawn}.`]),
    ...(role === 'core' ? ["Remove its URL from the other nodes' SKERRY_CORE_PEERS."] : []),
    ...remains.map((place) => `Still on disk: ${place} (rm -r ${shellWord(place)})`),
  ];
  context.output.result(
    { role, staying, withdrawn: withdrawn ?? null, running: running ?? null, remains },
    lines.join('\n'),
  );
  return EXIT.ok;
}
