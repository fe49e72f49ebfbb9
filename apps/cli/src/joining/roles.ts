import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isMissing, readConfig, type Setting, variableName } from '@skerry/kit';
import { type Environment, withoutCommandVariables } from '../config.ts';
import type { Context } from '../context.ts';
import { loadService } from '../network/daemon.ts';

/** What a server can join a network as. */
export const ROLES = ['compute', 'gateway', 'core', 'monitor'] as const;
export type Role = (typeof ROLES)[number];

export interface ListenPort {
  readonly variable: string;
  readonly host: string;
  readonly port: number;
  readonly describe: string;
}

/** The settings of a role's daemon that others depend on. */
export interface RoleSettings {
  readonly role: Role;
  readonly host: string;
  readonly ports: readonly ListenPort[];
  readonly dataDir: string;
  /** The core node that it follows; of a core node, its first peer. */
  readonly coreUrl: string | undefined;
  /** Where others reach it, where the settings say it. */
  readonly announceUrl: string | undefined;
  readonly ipv6Prefix: string | undefined;
  readonly domain: string | undefined;
  /** The whole of it, by the daemon's own names. */
  readonly config: Readonly<Record<string, unknown>>;
}

/** Where packages of distributions keep settings; each has them at its own role's name. */
export const SYSTEM_SETTINGS = '/etc/skerry';

/** Where a role's settings are: where a package put them, or in the person's configuration. */
export async function findSettingsFile({ paths }: Pick<Context, 'paths'>, role: string): Promise<string> {
  const system = join(SYSTEM_SETTINGS, `${role}.env`);
  const isThere = await readFile(system).then(
    () => true,
    (error: unknown) => !isMissing(error),
  );
  return isThere ? system : join(paths.config, `${role}.env`);
}

const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;

/** What a role's daemon would start with. Throws INVALID_CONFIG, as the daemon does. */
export async function readRole(role: Role, environment: Environment): Promise<RoleSettings> {
  const { config: spec } = await loadService(role);
  const config = readConfig(spec, withoutCommandVariables(environment));
  const host = textOf(config.host) ?? 'localhost';
  const ports = Object.entries<Setting<unknown>>(spec.settings)
    .filter(([key, { isPort }]) => isPort && config[key] !== 0)
    .map(([key, { describe }]) => ({
      variable: variableName(spec.prefix, key),
      // Some doors have an address of their own: p2pPort and p2pHost.
      host: textOf(config[key.replace(/Port$/, 'Host')]) ?? host,
      port: config[key] as number,
      describe,
    }));
  const [firstPeer] = (config.peers ?? []) as string[];
  // A core node names several.
  const [firstUrl] = (config.urls ?? []) as string[];
  return {
    ...{ role, host, ports, config },
    dataDir: String(config.dataDir),
    coreUrl: textOf(config.coreUrl) ?? firstPeer,
    announceUrl: textOf(config.announceUrl) ?? firstUrl,
    ipv6Prefix: textOf(config.ipv6Prefix),
    domain: textOf(config.domain),
  };
}
