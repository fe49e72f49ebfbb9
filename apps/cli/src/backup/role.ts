import { readdir } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { isMissing, type Keeping, readConfig, variableName, variablesOf } from '@skerry/kit';
import { AppError } from '@skerry/protocol/forms';
import { shellWord } from '@skerry/protocol/text/shell-word';
import { type Environment, withoutCommandVariables } from '../config.ts';
import type { Context } from '../context.ts';
import { findSettingsFile, SYSTEM_SETTINGS } from '../joining/roles.ts';
import { loadService } from '../network/daemon.ts';
import { DAEMON_NAMES, type DaemonName } from '../network/daemon-names.ts';
import { readSettingsFile } from '../network/settings-file.ts';
import { readLocalPlace } from '../networks/local.ts';

/** Of the embedded database, in the core node's data directory. */
export const DATABASE_DIRECTORY = 'postgres';

export interface RoleOptions {
  readonly role?: string;
  readonly dataDir?: string;
  readonly settings?: string;
  /** What its settings file stands above, such as what its unit sets. */
  readonly beneath?: Environment;
}

/** A node of this machine: its role, its settings, and where it keeps its data. */
export interface Node {
  readonly role: DaemonName;
  readonly config: Record<string, unknown>;
  readonly keeping: Keeping<Record<string, unknown>>;
  readonly directory: string;
  /** The variables of this role that are set. */
  readonly variables: Readonly<Record<string, string>>;
  /** Where its settings were looked for, where nothing is set but what the command names; undefined where some are. */
  readonly unset: string | undefined;
}

/** What a node is found by. */
type Machine = Pick<Context, 'environment' | 'paths'>;

const isRole = (text: string): text is DaemonName => (DAEMON_NAMES as readonly string[]).includes(text);

/** Throws INVALID_PARAMETERS. */
export function parseRole(text: string): DaemonName {
  if (isRole(text)) return text;
  throw new AppError('INVALID_PARAMETERS', `--role must be one of ${DAEMON_NAMES.join(', ')}, not ${text}`);
}

/** What makes the directories of packages (docs/packages.md) the usual ones. */
const packagedHomes = (role: string) => ({
  XDG_DATA_HOME: '/var/lib',
  SKERRY_CACHE: `/var/cache/skerry/${role}`,
});

/** The settings of the role's file, under what the environment says. */
async function readVariables(
  context: Machine,
  role: string,
  { settings: given, beneath = {} }: Pick<RoleOptions, 'settings' | 'beneath'>,
): Promise<{ readonly given: Environment; readonly path: string }> {
  const environment = withoutCommandVariables(context.environment);
  const path = given ?? (await findSettingsFile(context, role));
  const variables = await readSettingsFile(path);
  if (variables === undefined && given !== undefined)
    throw new AppError('INVALID_CONFIG', `there are no settings in ${given}`);
  const isPackaged = variables !== undefined && dirname(path) === SYSTEM_SETTINGS;
  const homes = isPackaged ? packagedHomes(role) : {};
  return { given: { ...homes, ...beneath, ...variables, ...environment }, path };
}

export async function describeNode(context: Machine, role: DaemonName, options: RoleOptions): Promise<Node> {
  const service = await loadService(role);
  const { prefix } = service.config;
  const { given, path } = await readVariables(context, role, options);
  const directory = variableName(prefix, 'dataDir');
  const environment =
    options.dataDir === undefined ? given : { ...given, [directory]: resolve(options.dataDir) };
  const config = readConfig(service.config, environment);
  const known = new Set(variablesOf(service.config));
  const isOwn = (entry: [string, string | undefined]): entry is [string, string] =>
    known.has(entry[0]) && entry[1] !== undefined;
  const variables = Object.entries(environment).filter(isOwn);
  return {
    role,
    config,
    keeping: service.keeping,
    directory: resolve(config.dataDir as string),
    variables: Object.fromEntries(variables),
    unset: Object.entries(given).some(isOwn) ? undefined : path,
  };
}

/** Whether there is anything in a directory. */
export async function hasFiles(directory: string): Promise<boolean> {
  try {
    return (await readdir(directory)).length > 0;
  } catch (error) {
    if (isMissing(error)) return false;
    throw error;
  }
}

/** A daemon that could not start leaves a directory, too: it must not stand in for the network of "skerry up". Throws INVALID_PARAMETERS. */
function onlyOf(found: readonly Node[], devnetCore: string | undefined): Node {
  const [only] = found;
  if (only !== undefined && found.length === 1 && devnetCore === undefined) return only;
  const roles = found.map(({ role }) => role).join(', ');
  const devnet =
    devnetCore && `--role core --data-dir ${shellWord(devnetCore)} for the core node of "skerry up"`;
  const choices = [...(only ? [`--role ${roles}`] : []), ...(devnet ? [devnet] : [])].join(', or ');
  throw new AppError(
    'INVALID_PARAMETERS',
    only === undefined
      ? `no node keeps data in the usual places: name it with ${devnet ?? '--role and --data-dir'}`
      : `this server has several nodes: choose with ${choices}`,
  );
}

/**
 * The node that is meant; where no role is given, the only one that has data here. Throws INVALID_PARAMETERS, and INVALID_CONFIG
 * where settings cannot be read: the node whose they are may be the one that is meant.
 */
export async function findNode(context: Machine, options: RoleOptions): Promise<Node> {
  if (options.role !== undefined) return describeNode(context, parseRole(options.role), options);
  if (options.dataDir !== undefined || options.settings !== undefined)
    throw new AppError('INVALID_PARAMETERS', '--data-dir and --settings need --role');
  const found: Node[] = [];
  const unread: string[] = [];
  for (const role of DAEMON_NAMES)
    try {
      const node = await describeNode(context, role, options);
      if (await hasFiles(node.directory)) found.push(node);
    } catch (error) {
      unread.push(`${role}: ${(error as Error).message}`);
    }
  if (unread.length > 0)
    throw new AppError(
      'INVALID_CONFIG',
      `it is not known which node is meant: choose with --role, or mend what cannot be read: ${unread.join('; ')}`,
    );
  const devnetCore = join((await readLocalPlace(context.paths.data)).dataDir, 'core');
  return onlyOf(found, (await hasFiles(devnetCore)) ? devnetCore : undefined);
}
