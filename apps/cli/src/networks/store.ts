import { join } from 'node:path';
import type { SkerryPaths } from '@skerry/kit';
import { makeDirectory, readTextIfAny, writeFileAtomically } from '@skerry/kit/files';
import { NETWORK_SERVICES, type NetworkService } from '@skerry/protocol/api/core/node';
import { AppError } from '@skerry/protocol/forms';
import { DEFAULT_CORE_URL } from '../config.ts';
import { readLocal } from './local.ts';
import { isServiceUrl } from './service-url.ts';

/** The networks that a person works with: `networks.json` in their configuration, mode 0600. */

/** A service that is left out is where the network's core node says. */
export interface Network extends Partial<Record<NetworkService, string>> {
  readonly core: string;
  readonly key?: string;
}

interface Kept {
  readonly current?: string;
  readonly networks: Readonly<Record<string, Network>>;
}

export interface Networks extends Kept {
  /** Where the network of "skerry up" is; at its usual ports where left out. */
  readonly localCore?: string;
}

/** The network of "skerry up". It is always there. */
export const LOCAL = 'local';

type Places = Pick<SkerryPaths, 'config' | 'data'>;

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const FILE = 'networks.json';
const NONE: Kept = { networks: {} };

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The fields of an object that may have these. Throws where it has others, or one that is no text. */
function readTexts<Name extends string>(value: unknown, where: string, names: readonly Name[]) {
  if (!isObject(value)) throw new Error(`${where} must be an object`);
  for (const [name, text] of Object.entries(value))
    if (!names.includes(name as Name) || typeof text !== 'string')
      throw new Error(`${where}.${name} is not one of ${names.join(', ')}, or not text`);
  return value as Partial<Record<Name, string>>;
}

function parseNetwork(value: unknown, where: string): Network {
  const { key, ...urls } = readTexts(value, where, ['core', 'key', ...NETWORK_SERVICES]);
  for (const [name, url] of Object.entries(urls))
    if (!isServiceUrl(url))
      throw new Error(`${where}.${name} must be an http or https URL, without a user name or password`);
  const { core, ...services } = urls;
  if (core === undefined) throw new Error(`${where}.core is missing`);
  return { core, ...services, ...(key === undefined ? {} : { key }) };
}

function parseNetworks(value: unknown): Kept {
  if (!isObject(value) || !isObject(value.networks)) throw new Error('it must have "networks"');
  const { networks, ...rest } = value;
  const { current } = readTexts(rest, 'the file', ['current']);
  const parsed = Object.entries(networks).map(([name, one]) => [name, parseNetwork(one, name)] as const);
  return { ...(current === undefined ? {} : { current }), networks: Object.fromEntries(parsed) };
}

/** Throws INVALID_CONFIG where the file is damaged. */
export async function loadNetworks({ config, data }: Places): Promise<Networks> {
  const [kept, localCore] = await Promise.all([loadKept(join(config, FILE)), readLocal(data)]);
  return localCore === undefined ? kept : { ...kept, localCore };
}

async function loadKept(path: string): Promise<Kept> {
  const text = await readTextIfAny(path);
  if (text === undefined) return NONE;
  try {
    return parseNetworks(JSON.parse(text));
  } catch (error) {
    throw new AppError('INVALID_CONFIG', `${path} cannot be read: ${(error as Error).message}`, {
      details: { hint: `correct the file or delete it, then add your networks again` },
    });
  }
}

export async function saveNetworks(
  { config }: Pick<Places, 'config'>,
  { localCore: _, ...kept }: Networks,
): Promise<void> {
  await makeDirectory(config);
  await writeFileAtomically(join(config, FILE), `${JSON.stringify(kept, null, 2)}\n`, 0o600);
}

export function checkNetworkName(name: string): void {
  if (NAME.test(name) && name !== LOCAL) return;
  throw new AppError(
    'INVALID_PARAMETERS',
    name === LOCAL
      ? `"${LOCAL}" is always the network of "skerry up"; choose another name`
      : `a network name has up to 64 ASCII letters, digits, dots, hyphens and underscores, not ${JSON.stringify(name)}`,
  );
}

/** Throws NETWORK_UNKNOWN. */
export function getNetwork({ networks, localCore }: Networks, name: string): Network {
  if (name === LOCAL) return { core: localCore ?? DEFAULT_CORE_URL };
  if (Object.hasOwn(networks, name)) return networks[name]!;
  throw new AppError('NETWORK_UNKNOWN', `there is no network named ${JSON.stringify(name)} here`, {
    details: {
      hint: `known: ${[LOCAL, ...Object.keys(networks)].join(', ')}; "skerry network add" adds one`,
    },
  });
}
