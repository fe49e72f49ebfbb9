import { daemonDataDir, PORTS, type PortName } from '@skerry/devnet';
import { isDataDirTaken } from '@skerry/kit';
import { AppError } from '@skerry/protocol/forms';
import type { Environment } from '../config.ts';
import type { Context } from '../context.ts';
import { readLocalPlace } from '../networks/local.ts';
import { getNetwork, LOCAL, loadNetworks } from '../networks/store.ts';
import { ROLES, type Role } from './roles.ts';

/** The network of "skerry up": its daemons have no settings files, and none of them joined anything. */

type Machine = Pick<Context, 'paths'>;

/** As a socket takes it: an IPv6 address stands in brackets only in a URL. */
const hostOf = ({ hostname }: URL) => hostname.replace(/^\[|\]$/g, '');

const portOf = ({ port, protocol }: URL) => port || (protocol === 'https:' ? '443' : '80');

/** What a role's daemon listens at, as its settings. Pure. */
function doorsOf(role: Role, urls: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const prefix = `SKERRY_${role.toUpperCase()}_`;
  const doors = Object.entries(urls).flatMap(([name, url]) => {
    const variable = PORTS[name as PortName]?.variable;
    const at = URL.parse(url ?? '');
    return variable?.startsWith(prefix) && at ? [{ variable, at }] : [];
  });
  const [first] = doors;
  return {
    ...Object.fromEntries(doors.map(({ variable, at }) => [variable, portOf(at)])),
    // A gateway's names lead to it by themselves.
    ...(first === undefined || role === 'gateway' ? {} : { [`${prefix}HOST`]: hostOf(first.at) }),
  };
}

/** The settings of a role's daemon in that network; undefined where none works. */
export async function readDevnetSettings({ paths }: Machine, role: Role): Promise<Environment | undefined> {
  const { dataDir, urls } = await readLocalPlace(paths.data);
  const own = daemonDataDir(dataDir, role);
  if ((await isDataDirTaken(own)) !== true) return undefined;
  const prefix = `SKERRY_${role.toUpperCase()}`;
  const { core } = getNetwork(await loadNetworks(paths), LOCAL);
  return {
    ...doorsOf(role, urls),
    [`${prefix}_DATA_DIR`]: own,
    ...(role === 'core' ? {} : { [`${prefix}_CORE_URL`]: core }),
  };
}

/** The roles that work in that network now. */
export async function listDevnetRoles(machine: Machine): Promise<Role[]> {
  const settings = await Promise.all(ROLES.map((role) => readDevnetSettings(machine, role)));
  return ROLES.filter((_, at) => settings[at] !== undefined);
}

/** Whether the environment says where a role's node has its data: then none of "skerry up" is meant. Pure. */
export const isNamedByVariable = ({ environment }: Pick<Context, 'environment'>, role: Role): boolean =>
  Boolean(environment[`SKERRY_${role.toUpperCase()}_DATA_DIR`]);

/** What whoever wants to leave that network is told. */
export async function notToLeave({ paths }: Machine): Promise<AppError> {
  const { dataDir } = await readLocalPlace(paths.data);
  return new AppError(
    'NODE_NOT_FOUND',
    'no node of this server is a member of a network but those of "skerry up", which end with it',
    { details: { hint: `"skerry down" ends that network; its data stay in ${dataDir}` } },
  );
}
